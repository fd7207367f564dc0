// Goal: a model comes back from its folder as it was, its texts are what other tools read, and what was changed since is told in words.
#include "shoal/learn/topic/model_files.h"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "shoal/learn/topic/document_rows.h"
#include "shoal/learn/topic/top_words.h"
#include "tests/learn/topic/handmade.h"

namespace shoal::learn::topic {
namespace {
namespace fs = std::filesystem;

std::string text_of(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class ModelFiles : public testing::Test {
 protected:
  void SetUp() override { folder_.begin({{"learner", "topics"}}); }
  void TearDown() override { fs::remove_all(folder_.path()); }
  std::string refusal() const {
    try {
      read_model(folder_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.fact();
    }
    return "accepted";
  }
  ModelFolder folder_{fs::temp_directory_path() / ("shoal-topics-" + std::to_string(::getpid()))};
  const Model small_ = counted({{{0, 0, 1, 2, 2}, {1, 1, 0, 1, 0}}}, {{0.5, 0.25}, 0.1}, 4);
};

TEST_F(ModelFiles, come_back_as_they_were) {
  Model model = counted(random_assignments(30, 40, 50, 7, 3), {{0.1, 0.2, 0.3, 1.0 / 3, 1e-5, 7, 0.1}, 0.007}, 50);
  write_model(folder_, model);
  const Model back = read_model(folder_);
  EXPECT_EQ(back.prior.alpha, model.prior.alpha);
  EXPECT_EQ(back.prior.beta, model.prior.beta);
  EXPECT_EQ(back.offsets, model.offsets);
  EXPECT_EQ(back.counts, model.counts);
  EXPECT_EQ(back.totals, model.totals);
  ASSERT_EQ(back.vocabulary.size(), 50u);
  EXPECT_EQ(back.vocabulary[49], "w49");
}

TEST_F(ModelFiles, texts_are_for_others) {
  write_model(folder_, small_);
  EXPECT_EQ(text_of(folder_.path() / "vocab.txt"), "w0\nw1\nw2\nw3\n");
  EXPECT_EQ(text_of(folder_.path() / "word_topic.txt"), "w0 1:2\nw1 0:1\nw2 0:1 1:1\nw3\n");
  EXPECT_EQ(text_of(folder_.path() / "topic-keys.txt"), "0\t0.5\tw1 w2\n1\t0.25\tw0 w2\n");
}

TEST_F(ModelFiles, a_document_is_a_line) {
  EXPECT_EQ(document_line("a\tb", {{{3, 0.25}, {7, 0.5}}, 0.1, 12, 1}), "a b\t12\t1\t7:0.5 3:0.25\n");
  EXPECT_EQ(document_line("empty", {}), "empty\t0\t0\t\n");
}

TEST_F(ModelFiles, what_does_not_fit_is_told) {
  EXPECT_EQ(refusal(), "holds no model");
  const auto refusal_of = [this](const auto& change) {
    Model model = small_;
    change(model);
    write_model(folder_, model);
    return refusal();
  };
  EXPECT_EQ(refusal_of([](Model&) {}), "accepted");
  EXPECT_EQ(refusal_of([](Model& model) { ++model.totals[1]; }), "model.safetensors has totals that are not the sums of its rows");
  EXPECT_EQ(refusal_of([](Model& model) { model.counts[0].topic = 0; --model.totals[1]; }),
            "model.safetensors has totals that are not the sums of its rows");
  EXPECT_EQ(refusal_of([](Model& model) { std::swap(model.counts[2], model.counts[3]); }),
            "model.safetensors has a row of topics out of order, for word 3");
  EXPECT_EQ(refusal_of([](Model& model) { model.prior.beta = 0; }), "model.safetensors has an alpha or beta that is not above zero");
  EXPECT_EQ(refusal_of([](Model& model) { model.vocabulary.number("more"); }), "vocab.txt has 5 words, model.safetensors 4");
  write_model(folder_, small_);
  write_model(folder_, small_);
  std::ofstream(folder_.path() / "vocab.txt") << "w0\nw2\nw1\nw3\n";
  EXPECT_EQ(refusal(), "vocab.txt has other words than the model");
  fs::remove(folder_.path() / "vocab.txt");
  EXPECT_EQ(refusal(), "vocab.txt has 0 words, model.safetensors 4");
  write_model(folder_, small_);
  TensorFile file = read_tensor_file(folder_.path() / "model.safetensors");
  std::get<TensorOf<std::uint64_t>>(file.others.at("offsets")).values = {0, 3, 1, 4, 4};
  write_tensor_file(folder_.path() / "model.safetensors", file);
  EXPECT_EQ(refusal(), "model.safetensors has rows that do not fit each other");
  write_tensor_file(folder_.path() / "model.safetensors", {});
  EXPECT_EQ(refusal(), "model.safetensors has no offsets");
  folder_.begin({{"learner", "linear"}});
  write_model(folder_, small_);
  EXPECT_EQ(refusal(), "holds a model of shoal linear");
}

// Of each document its topics, as training leaves them: the log-likelihood is that of all tokens' topics.
TEST_F(ModelFiles, documents_come_back_and_complete_the_likelihood) {
  const auto documents = random_assignments(30, 40, 50, 7, 3);
  const Model model = counted(documents, {{0.1, 0.2, 0.3, 1.0 / 3, 1e-5, 7, 0.1}, 0.007}, 50);
  LogLikelihood whole = log_likelihood(model);
  DocumentRows rows;
  TopicCounter count;
  for (const Assigned& document : documents) {
    Likelihood(model.prior, model.words()).add_document(count(document.topics), whole);
    rows.add(count(document.topics));
  }
  write_document_rows(folder_, rows);
  const auto back = read_document_rows(folder_, model);
  ASSERT_TRUE(back);
  ASSERT_EQ(back->size(), documents.size());
  for (std::size_t d = 0; d < rows.size(); ++d) EXPECT_TRUE(std::ranges::equal((*back)[d], rows[d])) << "document " << d;
  EXPECT_EQ(log_likelihood(model, *back).total(), whole.total());
  EXPECT_EQ(log_likelihood(model, *back).tokens, whole.tokens);
  const auto refusal_for = [this](const Model& other) -> std::string {
    try {
      read_document_rows(folder_, other);
    } catch (const Error& error) {
      return error.fact();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal_for(small_), "doc_counts.safetensors has a row of topics out of order, for document 1");
  Model more = model;
  ++more.totals[3];
  EXPECT_EQ(refusal_for(more), "doc_counts.safetensors has documents whose tokens are not those of the model");
  write_document_rows(folder_, std::nullopt);
  EXPECT_FALSE(read_document_rows(folder_, model));
}

TEST(TopWords, are_the_most_frequent_by_number) {
  const Model model = counted({{{5, 5, 5, 2, 2, 4, 4, 0, 1}, {0, 0, 0, 0, 0, 0, 0, 0, 1}}}, {{1, 1, 1}, 1}, 6);
  for (const std::size_t most : {0u, 1u, 3u, 9u}) {
    const auto top = top_words(model, most);
    ASSERT_EQ(top.size(), 3u);
    std::vector<std::uint32_t> words;
    for (const WordCount& here : top[0]) words.push_back(here.word);
    std::vector<std::uint32_t> wanted{5, 2, 4, 0};
    wanted.resize(std::min<std::size_t>(most, 4));
    EXPECT_EQ(words, wanted);
    EXPECT_TRUE(top[2].empty());
  }
}

}  // namespace
}  // namespace shoal::learn::topic
