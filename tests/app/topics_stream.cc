// `shoal topics train --method stream` as people call it: from files, of several members, and what it leaves; each mistake is one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "shoal/learn/topic/model_files.h"
#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;

class topics_stream : public testing::Test {
 protected:
  void SetUp() override {
    std::string text;
    for (int d = 0; d < 300; ++d) text += d % 2 == 0 ? "tea pot cup milk tea\n" : "sail boat wind deck strange boat\n";
    folder_.write("t.txt", text);
    folder_.write("v.txt", "tea\npot\ncup\nmilk\nsail\nboat\nwind\ndeck\n");
  }
  Outcome train(std::vector<std::string> more) const {
    std::vector<std::string> words = {"topics", "train", "t.txt", "--method", "stream", "-k", "2"};
    words.insert(words.end(), more.begin(), more.end());
    return shoal(folder_, words);
  }
  const Folder folder_;
};

TEST_F(topics_stream, are_learnt_batch_by_batch_and_used_as_others_are) {
  const auto told = train({"--vocab", "v.txt", "--alpha", "0.1", "--batch", "40", "--look-every", "4", "--keep-every", "3", "--json", "--output", "m"});
  ASSERT_EQ(told.status, 0) << told.err;
  const auto line = nlohmann::json::parse(told.out.substr(0, told.out.find('\n')));
  EXPECT_EQ(line.at("documents"), 160);
  EXPECT_LT(line.at("perplexity"), 5);  // four words to choose from
  EXPECT_GT(line.at("perplexity"), 3);
  const learn::ModelFolder folder(folder_.path() / "m");
  const auto model = learn::topic::read_model(folder);
  EXPECT_EQ(model.topics(), 2u);
  EXPECT_NEAR(static_cast<double>(model.totals[0] + model.totals[1]), 1500, 15);  // as many as were learnt from, as near as the last batch says
  EXPECT_EQ(folder.config("topics").at("documents"), 300);
  EXPECT_EQ(folder.config("topics").at("tokens"), 1500);
  EXPECT_EQ(folder.config("topics").at("files"), learn::Json({"t.txt"}));
  EXPECT_EQ(folder.config("topics").at("vocab"), "v.txt");
  for (const char* file : {"index.html", "pyldavis.json", "word_topic.txt", "topic-keys.txt"}) EXPECT_NE(read_file(folder.path() / file), "") << file;
  const auto shown = shoal(folder_, {"topics", "show", "m", "--words", "2"});
  EXPECT_THAT(shown.out, HasSubstr("boat"));
  folder_.write("n.txt", "tea cup\nwind boat\n");
  const auto inferred = shoal(folder_, {"topics", "infer", "m", "n.txt", "--smallest", "0.3"});
  EXPECT_THAT(inferred.out, testing::ContainsRegex("\n1\t2\t0\t[01]:0\\.[0-9]*\n2\t2\t0\t[01]:0"));
  const auto evaluated = shoal(folder_, {"topics", "evaluate", "m", "n.txt"});
  EXPECT_THAT(evaluated.out, HasSubstr("log-likelihood of the words given their topics"));
}

TEST_F(topics_stream, come_through_a_pipe) {
  const auto told = Program(folder_, {"/bin/sh", "-c", std::string("cat t.txt | ") + SHOAL_PROGRAM +
                                      " topics train - --method stream -k 2 --vocab v.txt --batch 40 --output piped"}).wait();
  ASSERT_EQ(told.status, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("read 300 documents of 8 words, 1,500 tokens, from "));
  ASSERT_EQ(train({"--vocab", "v.txt", "--batch", "40", "--output", "read"}).status, 0);
  EXPECT_EQ(read_file(folder_.path() / "piped/model.safetensors"), read_file(folder_.path() / "read/model.safetensors"));
  const auto many = shoal(folder_, {"run", "-n", "2", "--", SHOAL_PROGRAM, "topics", "train", "-", "--method", "stream", "--vocab", "v.txt"});
  EXPECT_THAT(many.err, HasSubstr("standard input: is read by one member, and there are 2 (name files that all members have)"));
}

TEST_F(topics_stream, members_leave_the_same_model_each_time) {
  const auto of_members = [&](const char* output) {
    const auto told = shoal(folder_, {"run", "-n", "3", "--", SHOAL_PROGRAM, "topics", "train", "t.txt", "--method", "stream", "-k", "2", "--vocab",
                                      "v.txt", "--batch", "40", "--threads", "2", "--output", output});
    EXPECT_EQ(told.status, 0) << told.err;
    return read_file(folder_.path() / output / "model.safetensors");
  };
  const std::string once = of_members("a");
  EXPECT_NE(once, "");
  EXPECT_EQ(of_members("b"), once);
}

// Each member has its own folder with the same words and texts; then one has others.
TEST_F(topics_stream, members_may_have_files_elsewhere_but_no_others) {
  for (const char* rank : {"0", "1"}) {
    std::filesystem::create_directory(folder_.path() / rank);
    for (const char* file : {"t.txt", "v.txt"}) std::filesystem::copy_file(folder_.path() / file, folder_.path() / rank / file);
  }
  const auto of_members = [&](const std::string& method, const std::string& output) {
    return shoal(folder_, {"run", "-n", "2", "--", "/bin/sh", "-c", std::string(SHOAL_PROGRAM) + " topics train $SHOAL_RANK/t.txt --vocab $SHOAL_RANK/v.txt -k 2 " +
                                                                    method + " --output " + output});
  };
  for (const char* method : {"--method stream --batch 40", "--method gibbs --sweeps 2 --test-share 0"}) {
    const auto told = of_members(method, method[9] == 's' ? "stream" : "gibbs");
    EXPECT_EQ(told.status, 0) << told.err;
  }
  folder_.write("1/v.txt", "tea\npot\ncup\nmilk\nsail\nboat\nwind\ncrew\n");
  folder_.write("1/t.txt", "tea pot\nsail boat\n");
  for (const char* method : {"--method stream --batch 40", "--method gibbs --sweeps 2 --test-share 0"}) {
    const auto told = of_members(method, "none");
    EXPECT_EQ(told.status, 2) << told.out;
    EXPECT_THAT(told.err, HasSubstr(method[9] == 's' ? "words of --vocab" : "data"));
  }
}

// Ended by a line that cannot be read, after what was kept; then the line is mended.
TEST_F(topics_stream, go_on_from_what_was_kept_to_the_same_bits) {
  const auto write = [&](const std::string& last) {
    std::string text = "1\tx\ttea pot\n";
    for (int d = 0; d < 299; ++d) text += d % 2 == 0 ? "d\tx\ttea pot cup milk tea\n" : "d\tx\tsail boat wind deck strange boat\n";
    folder_.write("t.txt", text + last);
  };
  const auto of = [&](const std::string& output, std::vector<std::string> more) {
    more.insert(more.end(), {"--format", "mallet", "--vocab", "v.txt", "--batch", "40", "--keep-every", "3", "--output", output});
    return train(more);
  };
  write("no columns\n");
  EXPECT_EQ(of("half", {}).status, 2);
  ASSERT_TRUE(std::filesystem::exists(folder_.path() / "half/stream.safetensors"));
  EXPECT_THAT(of("half", {}).err, HasSubstr("half: holds what a stream that did not end has learnt (--resume goes on from it"));
  EXPECT_THAT(of("half", {"--resume", "--beta", "2"}).err, HasSubstr("half: beta is 0.01 in the model, 2.0 here"));
  write("d\tx\ttea\n");
  const auto gone_on = of("half", {"--resume"});
  ASSERT_EQ(gone_on.status, 0) << gone_on.err;
  EXPECT_THAT(gone_on.out, HasSubstr("goes on after 240 documents in 6 batches\n"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "half/stream.safetensors"));
  const auto through = of("through", {"--resume"});
  EXPECT_THAT(through.out, HasSubstr("nothing to go on from: begins anew\n"));
  for (const char* file : {"model.safetensors", "word_topic.txt"})
    EXPECT_TRUE(read_file(folder_.path() / "half" / file) == read_file(folder_.path() / "through" / file)) << file;
  EXPECT_EQ(learn::ModelFolder(folder_.path() / "half").config("topics").at("documents"), 301);
}

TEST_F(topics_stream, refuse_in_one_line) {
  const auto refusal = [&](const std::vector<std::string>& more) {
    const auto told = train(more);
    EXPECT_EQ(told.status, 2) << told.out;
    EXPECT_EQ(std::ranges::count(told.err, '\n'), 1) << told.err;
    return told.err;
  };
  EXPECT_THAT(refusal({}), HasSubstr("--vocab: is needed: a stream does not say beforehand which words there will be (a file with a word a line)"));
  EXPECT_THAT(refusal({"--vocab", "none.txt"}), HasSubstr("none.txt"));
  EXPECT_THAT(refusal({"--vocab", "v.txt", "--sweeps", "9"}), HasSubstr("--sweeps: is of --method gibbs (leave it out)"));
  EXPECT_THAT(refusal({"--vocab", "v.txt", "--batch", "0"}), HasSubstr("--batch: is between 1 and"));
  EXPECT_THAT(refusal({"--vocab", "v.txt", "--kappa", "2"}), HasSubstr("kappa must be above 0 and at most 1"));
  const auto magic = shoal(folder_, {"topics", "train", "t.txt", "--method", "magic"});
  EXPECT_THAT(magic.err, HasSubstr("--method: \"magic\" is none (gibbs or stream)"));
  const auto gibbs = shoal(folder_, {"topics", "train", "t.txt", "--tau0", "2"});
  EXPECT_THAT(gibbs.err, HasSubstr("--tau0: is of --method stream (leave it out)"));
}

}  // namespace
}  // namespace shoal::app::test
