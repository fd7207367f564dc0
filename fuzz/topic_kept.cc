// Any bytes as what a training of topics has kept to go on from, raw or as the numbers of its tensors, by the first byte: a member's part of a checkpoint
// (topics that there are, of as many tokens as its documents have) and a stream's lambda (numbers that go on), or one line. Run fuzz_topic_kept [corpus folder].
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "fuzz/small_numbers.h"
#include "fuzz/target.h"
#include "fuzz/temporary_folder.h"
#include "shoal/core/error.h"
#include "shoal/learn/tensor_file.h"
#include "shoal/learn/topic/checkpoint.h"
#include "shoal/learn/topic/stream.h"
#include "shoal/net/inproc.h"

namespace {

using namespace shoal;

const std::filesystem::path& kept_folder() {
  static const fuzz::TemporaryFolder folder;
  static const bool made = std::filesystem::create_directories(folder.path() / "checkpoint");
  if (!made) std::abort();
  return folder.path();
}

// Two documents of three words and of one.
text::Corpus two_documents() {
  text::Corpus corpus;
  for (const char* word : {"a", "b"}) corpus.vocabulary.number(word);
  corpus.documents.append(std::vector<std::uint32_t>{0, 1, 0});
  corpus.documents.append(std::vector<std::uint32_t>{1});
  corpus.all_documents = 2;
  corpus.all_tokens = 4;
  return corpus;
}

}  // namespace

SHOAL_FUZZ(topic_kept, data, size) {
  constexpr std::uint32_t topics = 3;
  static const text::Corpus corpus = two_documents();
  if (size < 1) return 0;
  const auto part = kept_folder() / "checkpoint" / "sweep-7.rank-0-of-1.safetensors",
             lambda = kept_folder() / "stream.safetensors";
  if (data[0] == 0) {
    for (const auto& file : {part, lambda})
      std::ofstream(file, std::ios::binary)
          .write(reinterpret_cast<const char*>(data + 1), static_cast<std::streamsize>(size - 1));
  } else {
    fuzz::SmallNumbers numbers(data + 1, size - 1);
    learn::TensorFile content;
    content.others = {{"topics", numbers.list<std::uint32_t>()},
                      {"lengths", numbers.list<std::uint32_t>()},
                      {"prior", numbers.list<double>()}};
    if ((data[0] & 1) != 0) content.others.emplace("turns", numbers.list<std::uint32_t>());
    learn::write_tensor_file(part, content);
    content.others = {{"vocabulary", learn::TensorOf<std::uint64_t>{{1}, {corpus.vocabulary.digest()}}},
                      {"seen", numbers.list<std::uint64_t>()},
                      {"shrunk", numbers.list<double>()},
                      {"totals", numbers.list<double>()}};
    content.tensors = {{"excess", numbers.list<float>()}};
    learn::write_tensor_file(lambda, content);
  }
  net::InprocJob job(1);
  try {
    const auto kept = learn::topic::Checkpoints(job.member(0), kept_folder()).newest(corpus, topics, data::Share{0, 1, {}});
    if (!kept || kept->topics.size() != corpus.documents.tokens() || kept->prior.alpha.size() != topics) std::abort();
    for (const auto topic : kept->topics) {
      if (topic >= topics) std::abort();
    }
  } catch (const Error&) {
  }
  try {
    learn::topic::Stream stream(job.member(0), corpus.vocabulary, {.prior = {{0.1, 0.2, 0.3}, 0.05}});
    stream.go_on_from(lambda);
    for (std::uint32_t word = 0; word < corpus.vocabulary.size(); ++word) {
      for (std::uint32_t topic = 0; topic < topics; ++topic) {
        if (!std::isfinite(stream.lambda(word, topic))) std::abort();
      }
    }
  } catch (const Error&) {
  }
  return 0;
}
