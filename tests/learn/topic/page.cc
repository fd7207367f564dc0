// Goal: points lie as far apart as they should, the page holds the model's figures, and words cannot break out of it.
#include "shoal/learn/topic/page.h"

#include <gmock/gmock.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "shoal/learn/topic/map.h"
#include "tests/learn/topic/handmade.h"

namespace shoal::learn::topic {
namespace {

using Json = nlohmann::json;

double squared(const Point& a, const Point& b) { return (a[0] - b[0]) * (a[0] - b[0]) + (a[1] - b[1]) * (a[1] - b[1]); }

// Points of a plane come back as they were, but for where the plane lies; the corners of a simplex cannot, and collapse to less.
TEST(Scaling, finds_points_again_from_their_distances) {
  const std::vector<Point> wanted{{0, 0}, {3, 1}, {-2, 5}, {7, -1}, {1, 1}};
  std::vector<double> squares;
  for (const Point& a : wanted) {
    for (const Point& b : wanted) squares.push_back(squared(a, b));
  }
  const auto points = scaled(squares, wanted.size());
  double mean[2] = {};
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = 0; j < points.size(); ++j) EXPECT_NEAR(squared(points[i], points[j]), squares[i * points.size() + j], 1e-3);
    for (int axis : {0, 1}) mean[axis] += points[i][static_cast<std::size_t>(axis)];
  }
  EXPECT_NEAR(mean[0], 0, 1e-6);
  EXPECT_NEAR(mean[1], 0, 1e-6);
}

TEST(Scaling, of_few_or_equal_points_is_a_number) {
  EXPECT_TRUE(scaled({}, 0).empty());
  EXPECT_EQ(scaled(std::vector<double>{0}, 1), (std::vector<Point>{{0, 0}}));
  const auto two = scaled(std::vector<double>{0, 4, 4, 0}, 2);
  EXPECT_NEAR(squared(two[0], two[1]), 4, 1e-9);
  for (const Point& point : scaled(std::vector<double>(9), 3)) EXPECT_EQ(point, (Point{0, 0}));
}

TEST(Divergence, is_that_of_jensen_and_shannon) {
  const Model model = counted(random_assignments(40, 30, 12, 4, 3), {{1, 1, 1, 1, 1}, 1}, 12);  // the fifth topic has no token
  const std::vector<Topic> topics{3, 0, 2, 1, 4};
  const auto squares = divergences(model, topics);
  for (std::size_t i = 0; i < 5; ++i) {
    for (std::size_t j = 0; j < 5; ++j) {
      double wanted = i == j ? 0 : M_LN2;
      if (i != j && topics[i] < 4 && topics[j] < 4) {
        wanted = 0;
        for (std::uint32_t w = 0; w < 12; ++w) {
          const auto share = [&](Topic k) {
            double count = 0;
            for (const TopicCount& pair : model[w]) count += pair.topic == k ? pair.count : 0;
            return count / static_cast<double>(model.totals[k]);
          };
          const double p = share(topics[i]), q = share(topics[j]);
          if (p > 0) wanted += p * std::log(2 * p / (p + q)) / 2;
          if (q > 0) wanted += q * std::log(2 * q / (p + q)) / 2;
        }
      }
      EXPECT_NEAR(squares[i * 5 + j], wanted, 1e-9);
    }
  }
}

TEST(Examples, are_the_documents_with_most_of_a_topic) {
  data::Names words;
  for (int i = 0; i < 9; ++i) words.number("w" + std::to_string(i));
  Examples examples(2, std::vector<Topic>{0, 1});
  const std::vector<std::uint32_t> text{0, 1, text::kUnknownWord, 2, 3, 4, 5, 6, 7};
  for (int i = 0; i < 9; ++i) examples.offer("d" + std::to_string(i), text, {{{1, 0.1 * ((7 * i) % 9)}}, 0, 8, 1}, words);
  examples.offer("short", text, {{{1, 1.0}}, 0, 7, 0}, words);
  EXPECT_TRUE(examples.of(0).empty());
  std::vector<std::string> names;
  for (const auto& document : examples.of(1)) names.push_back(document.name);
  EXPECT_THAT(names, testing::ElementsAre("d5", "d1", "d6"));  // 7 i mod 9: 8, 7, 6
  EXPECT_EQ(examples.of(1)[0].text, "w0 w1 w2 w3 w4 w5 w6 w7");
  Examples others(2, std::vector<Topic>{0, 1});
  others.offer(1, {"theirs", "", 0.75});
  others.offer_lines(examples.lines());
  names.clear();
  for (const auto& document : others.of(1)) names.push_back(document.name);
  EXPECT_THAT(names, testing::ElementsAre("d5", "theirs", "d1"));
}

Json data_of(const std::string& page) {
  const std::string opening = "<script type=\"application/json\" id=\"data\">";
  const std::size_t begin = page.find(opening) + opening.size();
  return Json::parse(page.substr(begin, page.find("</script>", begin) - begin));
}

TEST(Page, holds_the_figures_of_the_model) {
  const Model model = counted(random_assignments(50, 60, 90, 4, 3), {{0.1, 0.2, 0.3, 0.4, 0.5}, 0.01}, 90);
  Examples examples(5, std::vector<Topic>{0, 1, 2, 3, 4});
  examples.offer(2, {"a letter", "w1 w2", 0.75});
  const Json data = data_of(page_of(model, examples, "letters", "of a box"));
  EXPECT_EQ(data.at("title"), "letters");
  EXPECT_EQ(data.at("topics"), 5);
  ASSERT_EQ(data.at("shown").size(), 4u);  // one is empty
  std::uint64_t tokens = 0;
  for (const Json& topic : data.at("shown")) {
    const auto k = topic.at("id").get<Topic>();
    EXPECT_EQ(topic.at("tokens"), model.totals[k]);
    EXPECT_EQ(topic.at("examples").size(), k == 2 ? 1u : 0u);
    tokens += topic.at("tokens").get<std::uint64_t>();
    for (std::size_t i = 0; i < topic.at("words").size(); i += 2) {
      const std::string word = data.at("words").at(topic.at("words").at(i).get<std::size_t>()).at(0);
      std::uint32_t count = 0;
      for (const TopicCount& pair : model[*model.vocabulary.find(word)]) count += pair.topic == k ? pair.count : 0;
      EXPECT_EQ(topic.at("words").at(i + 1), count) << word;
    }
  }
  EXPECT_EQ(data.at("tokens"), tokens);
}

TEST(Page, words_are_words_and_no_markup) {
  Model model = counted({{{0, 1}, {0, 0}}}, {{1}, 1}, 2);
  model.vocabulary = {};
  model.vocabulary.number("</script><script>alert(1)</script>");
  model.vocabulary.number("<!--\xff");
  const std::string page = page_of(model, Examples(1, std::vector<Topic>{0}), "<b>", "");
  EXPECT_EQ(page.find("alert(1)</script>"), std::string::npos);
  EXPECT_EQ(page.find("<!--"), std::string::npos);
  EXPECT_EQ(data_of(page).at("words").at(0).at(0), "</script><script>alert(1)</script>");
}

TEST(Page, asks_no_network) {
  const std::string page = page_of(counted({{{0}, {0}}}, {{1}, 1}, 1), Examples(1, std::vector<Topic>{0}), "t", "");
  for (const char* from : {"src=", "href=", "@import", "url(", "fetch(", "XMLHttpRequest"}) EXPECT_EQ(page.find(from), std::string::npos) << from;
}

TEST(Pyldavis, arguments_are_probabilities) {
  const Model model = counted(random_assignments(50, 60, 90, 4, 3), {{0.1, 0.2, 0.3, 0.4, 0.5}, 0.01}, 90);
  const Mixture mixture{{{0, 0.5}, {3, 0.25}}, 0.1, 12, 0};
  const Json data = Json::parse(pyldavis_of(model, std::vector<Mixture>(3, mixture)));
  EXPECT_EQ(data.at("topic_term_dists").size(), 4u);
  EXPECT_EQ(data.at("doc_topic_dists").size(), 3u);
  EXPECT_THAT(data.at("doc_lengths").get<std::vector<int>>(), testing::ElementsAre(12, 12, 12));
  EXPECT_EQ(data.at("vocab").size(), data.at("term_frequency").size());
  for (const char* rows : {"topic_term_dists", "doc_topic_dists"}) {
    for (const Json& row : data.at(rows)) {
      double sum = 0;
      for (const double share : row) {
        EXPECT_GT(share, 0);
        sum += share;
      }
      EXPECT_NEAR(sum, 1, 1e-5);
    }
  }
}

}  // namespace
}  // namespace shoal::learn::topic
