// The page of a model in a browser without a window: what a reader sees, and what becomes of it when something is chosen or looked for.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>

#include "shoal/core/aside.h"
#include "shoal/learn/topic/page.h"
#include "tests/app/program.h"

namespace shoal::app::test {
namespace {

using testing::HasSubstr;
using testing::Not;
namespace topic = learn::topic;

// Topics of tea, of sails, and of both; "deck" is in the second and third.
std::string page() {
  topic::Model model;
  model.prior = {{0.1, 0.2, 0.3}, 0.01};
  const std::vector<std::pair<const char*, std::vector<topic::TopicCount>>> rows{
      {"tea", {{0, 40}}}, {"cup", {{0, 30}, {2, 1}}}, {"sail", {{1, 20}}}, {"deck", {{1, 5}, {2, 6}}}, {"<i>", {{2, 2}}}};
  for (const auto& [word, row] : rows) {
    model.vocabulary.number(word);
    model.counts.insert(model.counts.end(), row.begin(), row.end());
    model.offsets.push_back(model.counts.size());
  }
  model.totals = {70, 25, 9};
  topic::Examples examples(3, std::vector<topic::Topic>{0, 1, 2});
  examples.offer(1, {"log <1>", "sail sail deck", 0.875});
  return topic::page_of(model, examples, "of tea & sails", "a test");
}

// The elements that are there after the page's scripts and `then` have run.
class Page : public testing::Test {
 protected:
  void SetUp() override {
    if (std::system("command -v chromium > /dev/null") != 0) GTEST_SKIP() << "no chromium: scripts/setup.sh test installs it";
  }
  std::string after(const std::string& then, std::string text = page()) const {
    text.insert(text.rfind("</body>"), "<script>" + then + "</script>");
    write_aside(folder_.path() / "index.html", text);
    const std::string profile = (folder_.path() / "profile").string(), file = (folder_.path() / "index.html").string();
    const std::string command = "timeout 50 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=" + profile +
                                " --virtual-time-budget=2000 --dump-dom 'file://" + file + "' 2> /dev/null";
    std::FILE* const browser = ::popen(command.c_str(), "r");
    std::string seen;
    std::array<char, 4096> buffer;
    for (std::size_t read; (read = std::fread(buffer.data(), 1, buffer.size(), browser)) > 0;) seen.append(buffer.data(), read);
    EXPECT_EQ(::pclose(browser), 0);
    return seen;
  }
  const Folder folder_;
};

TEST_F(Page, shows_the_topic_with_most_tokens_first) {
  const std::string seen = after("");
  EXPECT_THAT(seen, HasSubstr("<h1 id=\"title\">of tea &amp; sails</h1>"));
  EXPECT_THAT(seen, HasSubstr("a test · 3 topics of 5 words, 104 tokens"));
  EXPECT_THAT(seen, HasSubstr("<h2 id=\"topic-title\">Topic 0</h2>"));
  EXPECT_THAT(seen, HasSubstr("67.3% of all tokens; α 0.1."));
  EXPECT_THAT(seen, HasSubstr("aria-label=\"topic 2: deck, &lt;i&gt;, cup\""));
  EXPECT_THAT(seen, testing::ContainsRegex("<text class=\"name\"[^>]*>tea</text>"));
  EXPECT_THAT(seen, HasSubstr("<section id=\"examples-section\" hidden=\"\">"));
}

// What training leaves, not a page that was made here: its topics, words and documents are there, and can be walked through.
TEST_F(Page, of_a_training_shows_its_topics_and_documents) {
  std::string texts;
  for (int d = 0; d < 60; ++d)
    texts += d % 2 == 0 ? "tea pot cup milk tea tea pot cup milk tea\n" : "sail boat wind deck boat sail boat wind deck boat\n";
  folder_.write("t.txt", texts);
  const Outcome trained = shoal(folder_, {"topics", "train", "t.txt", "-k", "2", "--sweeps", "60", "--test-share", "0",
                                          "--threads", "1", "--output", "m"});
  ASSERT_EQ(trained.status, 0) << trained.err;
  const std::string left = read_file(folder_.path() / "m/index.html");
  const std::string first = after("", left), next = after("find('next').click()", left);
  EXPECT_THAT(first, HasSubstr("60 documents · 2 topics of 8 words, 600 tokens"));
  EXPECT_THAT(first, HasSubstr("<h2 id=\"topic-title\">Topic "));
  const auto of = [](const std::string& seen) { return seen.find("<mark>tea</mark>") != std::string::npos ? "tea" : "sails"; };
  EXPECT_STRNE(of(first), of(next)) << "each topic's documents are of one subject";
  for (const std::string* seen : {&first, &next}) {
    EXPECT_THAT(*seen, testing::ContainsRegex("<mark>(tea|boat)</mark>"));
    EXPECT_THAT(*seen, testing::ContainsRegex("<text class=\"name\"[^>]*>(tea|boat)</text>"));
  }
}

TEST_F(Page, a_topic_is_chosen_with_a_click_or_a_key_and_shows_its_documents) {
  for (const char* by : {"document.querySelectorAll('#map circle')[1].dispatchEvent(new Event('click'))",
                         "dispatchEvent(new KeyboardEvent('keydown', {key: 'ArrowRight'}))", "find('next').click()"}) {
    const std::string seen = after(by);
    EXPECT_THAT(seen, HasSubstr("<h2 id=\"topic-title\">Topic 1</h2>")) << by;
    EXPECT_THAT(seen, HasSubstr("<b>log &lt;1&gt;</b><span>87.5% of it</span>")) << by;
    EXPECT_THAT(seen, HasSubstr("<mark>deck</mark>")) << by;
  }
}

// By frequency cup, of which the first topic has most, comes before what only the third has; by what is its own it comes last.
TEST_F(Page, the_slider_orders_words_by_relevance) {
  const auto order = [this](const char* lambda) {
    const std::string seen = after(std::string("choose(2); find('lambda').value = '") + lambda + "'; find('lambda').oninput(); document.title = "
                                   "[...document.querySelectorAll('#words .name')].map((name) => name.textContent).join(' ')");
    const std::size_t begin = seen.find("<title>") + 7;
    return seen.substr(begin, seen.find("</title>") - begin);
  };
  EXPECT_EQ(order("1"), "deck &lt;i&gt; cup");
  EXPECT_EQ(order("0"), "&lt;i&gt; deck cup");
}

TEST_F(Page, the_search_finds_words_and_numbers) {
  const std::string word = after("search('DEC')");
  EXPECT_THAT(word, HasSubstr("“deck”: 11 tokens, most of them in topic 2"));
  EXPECT_THAT(word, HasSubstr("<h2 id=\"topic-title\">Topic 2</h2>"));
  EXPECT_THAT(word, HasSubstr("class=\"dim\""));  // the topic without it
  EXPECT_THAT(after("search('1')"), HasSubstr("<h2 id=\"topic-title\">Topic 1</h2>"));
  const std::string none = after("search('zzz')");
  EXPECT_THAT(none, HasSubstr("is no word of the topics shown"));
  EXPECT_THAT(none, Not(HasSubstr("class=\"dim\"")));
}

}  // namespace
}  // namespace shoal::app::test
