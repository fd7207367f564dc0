// Goal: the same topics of tokens in three programs' files give one likelihood, and what is no such file is told in words.
#include "shoal/learn/topic/peer_state.h"

#include <gmock/gmock.h>

#include <fstream>

#include "shoal/core/error.h"
#include "tests/data/files.h"
#include "tests/learn/topic/handmade.h"

namespace shoal::learn::topic {
namespace {

class PeerStates : public data::test::Files {
 protected:
  std::string refusal_of(const std::filesystem::path& state, StateFormat format, const StateOptions& options = {}) const {
    try {
      read_state(state, format, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Code::invalid_argument);
      return error.fact();
    }
    return "accepted";
  }
  std::string lightlda() const {
    std::string bytes;
    const auto put = [&bytes](auto number) { bytes.append(reinterpret_cast<const char*>(&number), sizeof number); };
    put(std::uint64_t{documents_.size()});
    std::uint64_t at = 0;
    put(at);
    for (const Assigned& document : documents_) put(at += 1 + 2 * document.words.size());
    for (const Assigned& document : documents_) {
      put(std::uint32_t{0});
      for (std::size_t i = 0; i < document.words.size(); ++i) {
        put(document.words[i]);
        put(document.topics[i]);
      }
    }
    return bytes;
  }
  std::string warplda() const {
    std::string text;
    for (const Assigned& document : documents_) {
      text += std::to_string(document.words.size()) + " ";
      for (std::size_t i = 0; i < document.words.size(); ++i) {
        text += std::to_string(document.words[i]) + ":" + std::to_string(document.topics[i]) + " ";
      }
      text += "\n";
    }
    return text;
  }
  std::string mallet() const {
    std::string text = "#doc source pos typeindex type topic\n#alpha : 0.25 0.25 0.25 \n#beta : 0.125\n";
    for (std::size_t d = 0; d < documents_.size(); ++d) {
      for (std::size_t i = 0; i < documents_[d].words.size(); ++i) {
        const std::string word = std::to_string(documents_[d].words[i]);
        text += std::to_string(d) + " NA " + std::to_string(i) + " " + word + " w" + word + " " + std::to_string(documents_[d].topics[i]) + "\n";
      }
    }
    return text;
  }
  const Prior prior_{{0.25, 0.25, 0.25}, 0.125};
  const std::vector<Assigned> documents_ = random_assignments(20, 15, 9, 3, 4);
  const std::string words_ = "w0\nw1\nw2\nw3\nw4\nw5\nw6\nw7\nw8\nw9\n";  // one more than there are tokens of
};

TEST_F(PeerStates, of_all_programs_have_one_likelihood) {
  const Model model = counted(documents_, prior_, 10);
  const Likelihood likelihood(prior_, 10);
  LogLikelihood wanted = log_likelihood(model);
  TopicCounter count;
  for (const Assigned& document : documents_) likelihood.add_document(count(document.topics), wanted);

  const auto words = file("words.txt", words_);
  file("run.model", "10 3 0.25 0.125\nwhatever\n");
  file("run.vocab", words_);
  const StateOptions said{words, 3, 0.75, 0.125};
  const PeerState states[] = {read_state(file("state.txt", mallet()), StateFormat::mallet, {.words_file = words}),
                              read_state(file("run.z.estimate", warplda()), StateFormat::warplda),
                              read_state(file("block.0", lightlda()), StateFormat::lightlda, said)};
  for (const PeerState& state : states) {
    EXPECT_EQ(state.model.counts, model.counts);
    EXPECT_EQ(state.model.offsets, model.offsets);
    EXPECT_EQ(state.model.totals, model.totals);
    EXPECT_EQ(state.model.vocabulary[9], "w9");
    const LogLikelihood sum = log_likelihood(state);
    EXPECT_EQ(sum.tokens, wanted.tokens);
    EXPECT_NEAR(sum.total(), wanted.total(), 1e-9);
  }
}

TEST_F(PeerStates, what_is_none_is_told) {
  const StateOptions said{file("words.txt", words_), 3, 0.75, 0.125};
  EXPECT_THROW(parse_state_format("yahoo"), Error);
  EXPECT_EQ(refusal_of(file("a.z.estimate", "2 1:1 2\n"), StateFormat::warplda, said), "is no document of WarpLDA");
  EXPECT_EQ(refusal_of(file("a.z.estimate", "3 1:1 2:0 \n"), StateFormat::warplda, said), "says 3 tokens and has 2");
  EXPECT_EQ(refusal_of(file("a.z.estimate", "1 1:3 \n"), StateFormat::warplda, said), "has topic 3, and there are 3");
  EXPECT_EQ(refusal_of(file("a.z.estimate", "1 10:1 \n"), StateFormat::warplda, said), "has word 10");
  EXPECT_EQ(refusal_of(file("a.z.estimate", "1 1:1 \n"), StateFormat::warplda, {.words_file = said.words_file}),
            "does not say how many topics there are and with which prior");
  const std::string whole = lightlda();
  for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{20}, whole.size() - 1}) {
    EXPECT_EQ(refusal_of(file("block.1", whole.substr(0, length)), StateFormat::lightlda, said), "is no block of LightLDA, or is cut short");
  }
  EXPECT_EQ(refusal_of(file("block.1", whole), StateFormat::lightlda), "does not say which words there are");
  EXPECT_EQ(refusal_of(file("twice.z.estimate", "1 0:0 \n"), StateFormat::warplda, {file("twice.txt", "a\na\n"), 3, 0.75, 0.125}),
            "'a' is there twice, first in line 1");
}

}  // namespace
}  // namespace shoal::learn::topic
