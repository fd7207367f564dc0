#include "shoal/learn/topic/tomotopy_file.h"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>

#include "shoal/core/error.h"

namespace shoal::learn::topic {
namespace {

constexpr std::uint16_t kNoTopicThere = 0xFFFF;

class TomotopyReader {
 public:
  explicit TomotopyReader(const std::filesystem::path& file) : file_(file), in_(file, std::ios::binary) {
    std::error_code none;
    end_ = size_ = std::filesystem::file_size(file, none);
    if (!in_ || none) refuse("cannot be read");
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& hint = {}) const {
    throw Error(Code::invalid_argument, what, file_.string(), hint);
  }
  [[noreturn]] void refuse_shape() const { refuse("is cut short, or not as tomotopy writes it", "save it again, with tomotopy 0.6 or later"); }

  template <class Number>
  Number number() {
    Number read;
    bytes(&read, sizeof read);
    return read;
  }
  // So many, if there are: no room is made for what the file does not have.
  template <class Number>
  std::vector<Number> numbers(std::uint64_t count) {
    if (count > (end_ - at_) / sizeof(Number)) refuse_shape();
    std::vector<Number> read(count);
    bytes(read.data(), count * sizeof(Number));
    return read;
  }
  template <class Number>
  std::vector<Number> list() {
    return numbers<Number>(number<std::uint32_t>());
  }
  std::string text(std::uint64_t length) {
    if (length > end_ - at_) refuse_shape();
    std::string read(length, '\0');
    bytes(read.data(), length);
    return read;
  }
  template <class Number>
  std::vector<Number> matrix(std::uint64_t rows, std::uint64_t columns) {
    if (number<std::uint32_t>() != rows || number<std::uint32_t>() != columns) refuse_shape();
    return numbers<Number>(rows * columns);
  }

  // Tags up to one that none is behind; `visit` reads of each what it wants.
  template <class Visit>
  void tags(const Visit& visit) {
    std::uint32_t behind = 0;
    for (bool first = true; first || behind > 0; first = false) {
      if (text(4) != "TPTK") refuse_shape();
      number<std::uint32_t>();  // version
      const auto size = number<std::uint64_t>();
      const auto name_length = number<std::uint32_t>(), now_behind = number<std::uint32_t>();
      constexpr std::uint64_t counted = 16;  // of the size, before the name
      if (size < counted || size - counted > size_ - at_ || name_length > size - counted || (!first && now_behind + 1 != behind)) refuse_shape();
      behind = now_behind;
      end_ = at_ + (size - counted);
      std::string name = text(name_length);
      if (!name.empty() && name.back() == '\0') name.pop_back();
      visit(std::string_view(name));
      in_.ignore(static_cast<std::streamsize>(end_ - at_));  // a seek would drop what was read ahead
      at_ = end_;
      end_ = size_;
    }
  }
  bool done() const { return at_ == size_; }

 private:
  void bytes(void* to, std::uint64_t size) {
    if (size > end_ - at_ || !in_.read(static_cast<char*>(to), static_cast<std::streamsize>(size))) refuse_shape();
    at_ += size;
  }

  const std::filesystem::path file_;
  std::ifstream in_;
  std::uint64_t size_ = 0, at_ = 0;
  std::uint64_t end_ = 0;  // of what may be read: of a tag, or of the file
};

void read_words(TomotopyReader& in, data::Names& vocabulary) {
  if (in.text(4) != "Dict") in.refuse_shape();
  const auto count = in.number<std::uint32_t>();
  for (std::uint32_t word = 0; word < count; ++word) {
    if (vocabulary.number(in.text(in.number<std::uint32_t>())) != word) in.refuse("has a word twice");
  }
}

// Tokens of topics and of words with topics are there twice, as counts and one by one: where these differ, something is wrong.
class Tallies {
 public:
  Tallies(TomotopyReader& in, std::uint32_t topics, std::uint32_t words)
      : topics_(topics), of_topics_(in.matrix<std::uint32_t>(topics, 1)), of_words_(in.matrix<std::uint32_t>(topics, words)) {}
  void take(std::uint32_t word, Topic topic) {
    --of_topics_[topic];
    --of_words_[std::uint64_t{word} * topics_ + topic];
  }
  bool are_taken() const {
    const auto is_taken = [](std::uint32_t left) { return left == 0; };
    return std::ranges::all_of(of_topics_, is_taken) && std::ranges::all_of(of_words_, is_taken);
  }

 private:
  const std::uint32_t topics_;
  std::vector<std::uint32_t> of_topics_, of_words_;
};

}  // namespace

TomotopyFile read_tomotopy_file(const std::filesystem::path& path) {
  TomotopyReader in(path);
  if (in.text(5) != std::string_view("LDA\0\0", 5)) in.refuse("is no model of tomotopy's LDAModel");
  if (in.text(5) != std::string_view("one\0\0", 5)) in.refuse("weighs tokens otherwise than by one", "train with tw=tomotopy.TermWeight.ONE");
  TomotopyFile read;
  data::Names words;
  std::uint64_t used = 0;  // words
  in.tags([&](std::string_view name) {
    if (name == "dict") read_words(in, words);
    if (name == "realV") used = in.number<std::uint64_t>();
  });
  std::uint32_t topics = 0;
  in.tags([&](std::string_view name) {
    if (name == "alphas") {
      const auto rows = in.number<std::uint32_t>(), columns = in.number<std::uint32_t>();
      if (columns != 1) in.refuse_shape();
      const auto alpha = in.numbers<float>(rows);
      read.prior.alpha.assign(alpha.begin(), alpha.end());
    } else if (name == "eta") {
      read.prior.beta = in.number<float>();
    } else if (name == "K") {
      topics = in.number<std::uint16_t>();
    } else if (name == "etaByWord") {
      if (in.number<std::uint32_t>() != 0) in.refuse("has a prior of single words", "only one beta for all can be scored");
    }
  });
  if (topics == 0 || read.prior.alpha.size() != topics || used > words.size()) in.refuse_shape();
  if (used == 0) in.refuse("has no topics of tokens yet", "train it first");
  for (std::uint32_t word = 0; word < used; ++word) read.vocabulary.number(words[word]);

  Tallies tallies(in, topics, read.vocabulary.size());
  const auto documents = in.number<std::uint32_t>();
  if (documents == 0) in.refuse("has no documents", "save it with them: model.save(path), not with full=False");
  std::vector<std::uint32_t> of_document;
  for (std::uint32_t d = 0; d < documents; ++d) {
    std::vector<std::uint16_t> its_topics;
    std::vector<std::uint32_t> its_words;
    in.tags([&](std::string_view name) {
      if (name == "words") its_words = in.list<std::uint32_t>();
    });
    in.tags([&](std::string_view name) {
      if (name == "Zs") its_topics = in.list<std::uint16_t>();
    });
    if (its_topics.size() != its_words.size()) in.refuse_shape();
    of_document.clear();
    for (std::size_t i = 0; i < its_words.size(); ++i) {
      if (its_words[i] >= used || its_topics[i] == kNoTopicThere) continue;
      if (its_topics[i] >= topics) in.refuse("has topic " + std::to_string(its_topics[i]) + ", and there are " + std::to_string(topics));
      tallies.take(its_words[i], its_topics[i]);
      of_document.push_back(its_words[i]);
      read.topics.push_back(its_topics[i]);
    }
    read.documents.append(of_document);
  }
  if (!in.done()) in.refuse_shape();
  if (!tallies.are_taken()) in.refuse("counts other tokens than its documents have");
  read.documents.finish();
  return read;
}

}  // namespace shoal::learn::topic
