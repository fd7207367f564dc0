// `shoal topics infer`, `evaluate` and `show` as people call them, on a model that is written here; each mistake is one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "shoal/learn/topic/model_files.h"
#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// Two topics: of tea, pot, cup, milk 10 tokens each in the first, of sail, boat, wind, deck in the second.
void write_model(const Folder& folder) {
  learn::topic::Model model;
  model.prior = {{0.1, 0.1}, 0.01};
  for (const char* word : {"tea", "pot", "cup", "milk", "sail", "boat", "wind", "deck"}) {
    const std::uint32_t number = model.vocabulary.number(word);
    model.counts.push_back({number / 4, 10 - number % 4});
    model.offsets.push_back(model.counts.size());
  }
  model.totals = {34, 34};
  learn::ModelFolder to(folder.path() / "m.model");
  to.begin({{"learner", "topics"}});
  learn::topic::write_model(to, model);
}

class topics : public testing::Test {
 protected:
  void SetUp() override { write_model(folder_); }
  std::string refusal(std::vector<std::string> words) const {
    words.insert(words.begin(), "topics");
    const auto told = shoal(folder_, words);
    EXPECT_EQ(told.status, 2) << told.out;
    return told.err;
  }
  const Folder folder_;
};

TEST_F(topics, are_inferred_a_line_a_document) {
  folder_.write("t.txt", "tea in a pot, tea in a cup\nboat: sail, wind, deck, boat\nnothing known\n");
  const auto told = shoal(folder_, {"topics", "infer", "m.model", "t.txt", "--smallest", "0.2"});
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_THAT(told.out, testing::MatchesRegex("document\ttokens\tunknown\ttopics\n1\t4\t0\t0:0\\.9[0-9]*\n2\t5\t0\t1:0\\.9[0-9]*\n3\t0\t[12]\t\n"));
  EXPECT_THAT(told.err, HasSubstr("are of words that the model does not know"));
  const auto again = shoal(folder_, {"topics", "infer", "m.model", "t.txt", "--smallest", "0.2", "--threads", "3", "--output", "o.tsv"});
  EXPECT_EQ(again.out, "");
  EXPECT_EQ(read_file(folder_.path() / "o.tsv"), told.out);
  const auto drawn = shoal(folder_, {"topics", "infer", "m.model", "t.txt", "--method", "gibbs", "--most", "1"});
  EXPECT_THAT(drawn.out, HasSubstr("\n2\t5\t0\t1:0."));
}

TEST_F(topics, are_shown_as_words) {
  const auto told = shoal(folder_, {"topics", "show", "m.model", "--words", "2"});
  EXPECT_EQ(told.out, "2 topics, 8 words, 68 tokens; alpha sums to 0.2, beta 0.01\n    0  50.0 %  tea pot\n    1  50.0 %  sail boat\n");
  const auto line = shoal(folder_, {"topics", "show", "m.model", "--topics", "1", "--json"}).out;
  EXPECT_EQ(nlohmann::json::parse(line).at("words").size(), 4u);
}

TEST_F(topics, are_evaluated_by_what_they_foretell) {
  folder_.write("a.tsv", "1\tx\ttea pot milk\n2\tx\tsail boat\n");
  folder_.write("b.tsv", "2\tx\twind deck\n1\tx\tcup junk\n3\tx\ttea\n");
  const auto told = shoal(folder_, {"topics", "evaluate", "m.model", "--heldout", "a.tsv", "b.tsv", "--format", "mallet", "--json"});
  ASSERT_EQ(told.status, 0) << told.err;
  const auto line = nlohmann::json::parse(told.out.substr(told.out.find('\n') + 1));
  EXPECT_EQ(line.at("tokens"), 4);
  EXPECT_EQ(line.at("unknown"), 1);
  EXPECT_LT(line.at("perplexity"), 6);  // nearly four words to choose from, and eight for the document whose first half is missing
  folder_.write("t.txt", "tea pot cup milk\nsail wind deck boat\n");
  const auto halves = shoal(folder_, {"topics", "evaluate", "m.model", "t.txt"});
  EXPECT_THAT(halves.out, HasSubstr("of the hidden halves of 2 documents"));
  const auto whole = shoal(folder_, {"topics", "evaluate", "m.model", "t.txt", "--left-to-right", "redraw"});
  EXPECT_THAT(whole.out, HasSubstr("from left to right perplexity "));
  const auto coherent = shoal(folder_, {"topics", "evaluate", "m.model", "t.txt", "--coherence", "--words", "3", "--per-topic"});
  EXPECT_THAT(coherent.out, HasSubstr("topic 1: C_V "));
  EXPECT_THAT(coherent.out, HasSubstr("coherence of 3 words a topic, mean of 2 topics: C_V 1.0000, NPMI 1.0000"));
}

// The joint log-likelihood of a folder is what training printed, of one member and of several, and after more documents.
TEST_F(topics, are_as_likely_as_training_said) {
  std::string text;
  for (int d = 0; d < 40; ++d) text += d % 2 == 0 ? "tea pot cup milk tea\n" : "sail boat wind deck boat\n";
  folder_.write("t.txt", text);
  const std::vector<std::string> train = {"topics", "train", "t.txt", "-k", "3", "--sweeps", "60", "--look-every", "60", "--threads", "2", "--json", "--output"};
  const auto expect_same = [&](std::vector<std::string> words, const std::string& output) {
    words.push_back(output);
    const auto told = shoal(folder_, words);
    ASSERT_EQ(told.status, 0) << told.err;
    const auto said = nlohmann::json::parse(told.out.substr(told.out.find('{')));
    const auto found = nlohmann::json::parse(shoal(folder_, {"topics", "evaluate", output, "--json"}).out);
    EXPECT_NEAR(found.at("per_token"), said.at("log_likelihood"), 1e-12);
    EXPECT_LT(found.at("documents"), 0);
  };
  expect_same(train, "alone");
  std::vector<std::string> of_members = {"run", "-n", "2", "--", SHOAL_PROGRAM};
  of_members.insert(of_members.end(), train.begin(), train.end());
  expect_same(of_members, "together");
  folder_.write("u.txt", "tea cup\n");
  ASSERT_EQ(shoal(folder_, {"topics", "update", "alone", "u.txt", "--output", "more"}).status, 0);
  const auto before = nlohmann::json::parse(shoal(folder_, {"topics", "evaluate", "alone", "--json"}).out);
  const auto after = nlohmann::json::parse(shoal(folder_, {"topics", "evaluate", "more", "--json"}).out);
  EXPECT_EQ(after.at("tokens").get<int>(), before.at("tokens").get<int>() + 2);
  EXPECT_LT(after.at("log_likelihood"), before.at("log_likelihood"));
}

TEST_F(topics, of_new_documents_say_how_many_words_were_not_known) {
  folder_.write("t.txt", "tea pot\ncup tea\n");
  ASSERT_EQ(shoal(folder_, {"topics", "train", "t.txt", "-k", "2", "--sweeps", "3", "--test-share", "0", "--output", "first"}).status, 0);
  folder_.write("u.txt", "tea sail boat\nwind\ncup\n");
  const auto told = shoal(folder_, {"topics", "update", "first", "u.txt", "--output", "more"});
  ASSERT_EQ(told.status, 0) << told.err;
  const std::string lines = read_file(folder_.path() / "more" / "doc_topics.tsv");
  EXPECT_THAT(lines, testing::ContainsRegex("\n1\t1\t2\t[^\n]*\n2\t0\t1\t[^\n]*\n3\t1\t0\t[^\n]*\n$"));
  const learn::ModelFolder folder(folder_.path() / "more");
  EXPECT_EQ(folder.config("topics").at("documents"), 5);
  EXPECT_EQ(folder.config("topics").at("updates").at(0).at("files"), learn::Json({"u.txt"}));
  EXPECT_EQ(folder.config("topics").at("tokens"), 6);
}

// Another program's topics are a model that more documents come into: what was counted stays, its documents keep their names.
TEST_F(topics, of_a_mallet_state_take_more_documents) {
  folder_.write("s.txt",
                "#doc source pos typeindex type topic\n#alpha : 0.1 0.2 \n#beta : 0.05\n0 first 0 0 tea 0\n0 first 1 1 pot 0\n1 second 0 2 sail 1\n"
                "1 second 1 3 boat 1\n1 second 2 2 sail 1\n");
  folder_.write("u.txt", "tea pot tea\nsail whale\n");
  const auto told = shoal(folder_, {"topics", "update", "s.txt", "u.txt", "--state", "mallet", "--output", "more", "--new-words"});
  ASSERT_EQ(told.status, 0) << told.err;
  const learn::ModelFolder folder(folder_.path() / "more");
  const learn::topic::Model model = learn::topic::read_model(folder);
  EXPECT_EQ(model.prior.alpha, (std::vector<double>{0.1, 0.2}));
  EXPECT_EQ(model.prior.beta, 0.05);
  EXPECT_EQ(model.words(), 5u);
  EXPECT_EQ(model.totals[0] + model.totals[1], 10u);
  for (const auto& [topic, count] : model[*model.vocabulary.find("boat")]) EXPECT_EQ(std::make_pair(topic, count), std::make_pair(1u, 1u));
  EXPECT_THAT(read_file(folder_.path() / "more/doc_topics.tsv"), testing::MatchesRegex("document\t[^\n]*\nfirst\t2\t0\t0:[^\n]*\nsecond\t3\t0\t1:[^\n]*\n1\t3\t0\t[^\n]*\n2\t2\t0\t[^\n]*\n"));
  EXPECT_EQ(folder.config("topics").at("documents"), 4);
  EXPECT_EQ(nlohmann::json::parse(shoal(folder_, {"topics", "evaluate", "more", "--json"}).out).at("tokens"), 10);  // with the documents' counts
}

TEST_F(topics, are_inferred_and_evaluated_on_one_member) {
  folder_.write("t.txt", "tea\n");
  for (const char* const verb : {"infer", "evaluate"}) {
    const auto told = shoal(folder_, {"run", "-n", "2", "--", SHOAL_PROGRAM, "topics", verb, "m.model", "t.txt"});
    EXPECT_EQ(told.status, 2);
    EXPECT_THAT(told.err, HasSubstr(std::string("shoal topics ") + verb + ": runs on one member (start it without shoal run"));
  }
}

TEST_F(topics, of_other_programs_foretell_words_too) {
  folder_.write("w.vocab", "tea\npot\nsail\nboat\n");
  folder_.write("w.z.estimate", "4 0:0 0:0 1:0 1:0 \n4 2:1 2:1 3:1 3:1 \n");
  folder_.write("a.tsv", "1\tx\ttea\n2\tx\tsail\n");
  folder_.write("b.tsv", "1\tx\tpot\n2\tx\tboat\n");
  const auto told = shoal(folder_, {"topics", "evaluate", "w.z.estimate", "--state", "warplda", "-k", "2", "--alpha-sum", "0.2", "--beta", "0.01", "--heldout",
                                    "a.tsv", "b.tsv", "--format", "mallet", "--json"});
  ASSERT_EQ(told.status, 0) << told.err;
  const auto likelihood = nlohmann::json::parse(told.out.substr(0, told.out.find('\n')));
  EXPECT_EQ(likelihood.at("tokens"), 8);
  EXPECT_LT(likelihood.at("per_token"), 0);
  const auto completion = nlohmann::json::parse(told.out.substr(told.out.find('\n') + 1));
  EXPECT_NEAR(completion.at("perplexity"), 2, 0.3);  // one of two words
}

TEST_F(topics, refuse_in_one_line) {
  folder_.write("t.txt", "tea\n");
  EXPECT_THAT(refusal({"infer", "none.model", "t.txt"}), StartsWith("none.model: holds no model"));
  EXPECT_THAT(refusal({"infer", "m.model", "t.txt", "--method", "magic"}), HasSubstr("--method: \"magic\" is none (cvb0 or gibbs)"));
  EXPECT_THAT(refusal({"infer", "m.model", "t.txt", "--smallest", "2"}), HasSubstr("--smallest: 2 is no share"));
  EXPECT_THAT(refusal({"infer", "m.model", "no.txt"}), HasSubstr("no.txt"));
  EXPECT_THAT(refusal({"evaluate", "m.model", "--coherence"}), HasSubstr("--coherence: needs texts"));
  EXPECT_THAT(refusal({"evaluate", "m.model", "t.txt", "--left-to-right", "up"}), HasSubstr("--left-to-right: \"up\" is none"));
  folder_.write("unknown.txt", "junk trash\n");
  EXPECT_THAT(refusal({"evaluate", "m.model", "unknown.txt"}), HasSubstr("no token could be scored"));
  EXPECT_THAT(refusal({"evaluate", "m.model", "t.txt", "--coherence", "--words", "1"}), HasSubstr("--words: is at least 2"));
  EXPECT_THAT(refusal({"infer", "m.model", "t.txt", "--threads", "5000"}), HasSubstr("--threads: is at most 4096"));
  EXPECT_THAT(refusal({"train", "t.txt", "--seed", "-1"}), HasSubstr("--seed: \"-1\" is no whole number"));
  EXPECT_THAT(refusal({"train", "t.txt", "--beta", "1e300"}), HasSubstr("--beta: 1e+300 is not between 1e-9 and 1e9"));
  folder_.write("two.txt", "tea pot\nsail boat\n");
  EXPECT_THAT(refusal({"train", "two.txt", "--test-share", "0.999", "--output", "x"}), HasSubstr("--test-share: leaves no document to learn from"));
  learn::ModelFolder busy(folder_.path() / "busy");
  busy.begin({{"learner", "topics"}});
  EXPECT_THAT(refusal({"train", "two.txt", "--test-share", "0", "--output", "busy"}), HasSubstr("busy: another process trains into it"));
  folder_.write("m.model/vocab.txt", "tea\n");
  EXPECT_THAT(refusal({"show", "m.model"}), HasSubstr("vocab.txt has 1 words, model.safetensors 8"));
}

}  // namespace
}  // namespace shoal::app::test
