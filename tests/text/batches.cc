// Goal: documents in batches are those of the whole corpus, whatever the format and the size of a batch, from files and from a pipe that is still
// being written to; words that are not known take no memory for ever.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <fstream>
#include <thread>

#include "tests/text/corpora.h"

namespace shoal::text {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Batches : public test::Corpora {
 protected:
  static data::Names names(std::initializer_list<const char*> words) {
    data::Names names;
    for (const char* word : words) names.number(word);
    return names;
  }
  // The sizes of the batches, and all documents and names in them.
  struct Came {
    std::vector<std::size_t> sizes;
    std::vector<std::vector<std::uint32_t>> documents;
    std::vector<std::string> names;
    Reading reading;
  };
  static Came batches(const Source& source, std::uint64_t size) {
    Came came;
    came.reading = read_batches(source, size, [&](const Corpus& batch) {
      came.sizes.push_back(batch.documents.size());
      for (std::size_t d = 0; d < batch.documents.size(); ++d) came.documents.emplace_back(batch.documents[d].begin(), batch.documents[d].end());
      came.names.insert(came.names.end(), batch.names.begin(), batch.names.end());
    });
    return came;
  }
};

TEST_F(Batches, have_the_documents_of_the_corpus) {
  const data::Names known = names({"tea", "cup", "pot", "milk"});
  const std::vector<std::pair<std::string, Source>> sources = {
      {"tea cup\nnothing\npot tea milk\ncup\nmilk milk\ntea\n", {}},
      {"a\tx\ttea cup\nb\tx\tpot pot\nc\tx\tbad\nd\tx\tmilk\n", {.format = Format::mallet}},
      {"4\n4\n5\n1 1 2\n1 3 1\n2 4 1\n4 1 1\n4 2 3\n", {.format = Format::uci, .words_file = file("v.txt", "tea\ncup\npot\nmilk\n")}},
      {"2 0:1 3:2\n1 1:1\n1 2:4\n", {.format = Format::lda_c, .words_file = file("v.txt", "tea\ncup\npot\nmilk\n")}},
  };
  for (const auto& [text, options] : sources) {
    Source source = options;
    source.files = {file("t.txt", text)};
    source.vocabulary = &known;
    const auto [corpus, reading] = read_corpus(source);
    for (const std::uint64_t size : {1u, 2u, 3u, 100u}) {
      const Came came = batches(source, size);
      ASSERT_EQ(came.documents.size(), corpus.documents.size());
      for (std::size_t d = 0; d < came.documents.size(); ++d) EXPECT_THAT(came.documents[d], testing::ElementsAreArray(corpus.documents[d]));
      EXPECT_EQ(came.names, corpus.names);
      for (std::size_t i = 0; i + 1 < came.sizes.size(); ++i) EXPECT_EQ(came.sizes[i], size);
      EXPECT_EQ(sentence(came.reading), sentence(reading));
    }
  }
}

TEST_F(Batches, come_while_the_pipe_is_open) {
  const std::filesystem::path fifo = folder_ / "pipe";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  const data::Names known = names({"tea", "cup"});
  std::size_t seen = 0;
  std::thread writer;
  Source source;
  source.files = {fifo};
  source.format = Format::lines;
  source.vocabulary = &known;
  {
    std::atomic<std::size_t> learnt = 0;
    writer = std::thread([&] {
      std::ofstream out(fifo);
      for (int batch = 0; batch < 3; ++batch) {
        out << "tea cup\ncup\n" << std::flush;
        // The next two lines come only when these have been taken.
        while (learnt.load() < static_cast<std::size_t>(batch)) std::this_thread::yield();
      }
    });
    read_batches(source, 2, [&](const Corpus& batch) {
      seen += batch.documents.size();
      ++learnt;
    });
    writer.join();
  }
  EXPECT_EQ(seen, 6u);
}

TEST_F(Batches, forget_words_that_are_not_known) {
  const data::Names known = names({"tea"});
  std::string text;
  constexpr int kDocuments = 1200, kWords = 1000;
  for (int d = 0; d < kDocuments; ++d) {
    text += "tea";
    for (int i = 0; i < kWords; ++i) text += " x" + std::to_string(d * kWords + i);
    text += '\n';
  }
  Source source;
  source.files = {file("t.txt", text)};
  source.format = Format::lines;
  source.vocabulary = &known;
  const Came came = batches(source, 10);
  EXPECT_EQ(came.documents.size(), static_cast<std::size_t>(kDocuments));
  for (const auto& document : came.documents) ASSERT_THAT(document, ElementsAre(0));
  EXPECT_THAT(sentence(came.reading), HasSubstr("(1,200,000 tokens)"));
}

}  // namespace
}  // namespace shoal::text
