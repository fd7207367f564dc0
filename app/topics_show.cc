// shoal topics show MODEL: a line a topic.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "app/topics.h"
#include "shoal/core/aside.h"
#include "shoal/core/text.h"
#include "shoal/learn/topic/page.h"
#include "shoal/learn/topic/top_words.h"

namespace shoal::app {
namespace {

namespace topic = learn::topic;

struct ShowTopicsOptions {
  std::string model;
  std::size_t topics = 0, words = 10;
  bool json = false;
  std::string page;
};

int show(const ShowTopicsOptions& options) {
  const topic::Model model = TopicsModel(options.model).model;
  if (!options.page.empty()) {
    write_aside(options.page, topic::page_of(model, topic::Examples(model.topics(), {}), std::filesystem::path(options.model).filename(), ""));
    return 0;
  }
  const auto top = topic::top_words(model, options.words);
  const std::uint64_t tokens = std::accumulate(model.totals.begin(), model.totals.end(), std::uint64_t{0});
  std::vector<topic::Topic> order(model.topics());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&](topic::Topic a, topic::Topic b) { return model.totals[a] > model.totals[b]; });
  if (options.topics > 0 && options.topics < order.size()) order.resize(options.topics);
  if (!options.json) {
    fmt::print("{}, {}, {}; alpha sums to {:.4g}, beta {:.4g}\n", show_count(model.topics(), "topics"), show_count(model.words(), "words"),
               show_count(tokens, "tokens"), model.prior.alpha_sum(), model.prior.beta);
  }
  for (const topic::Topic k : order) {
    learn::Json words = learn::Json::array();
    std::string text;
    for (const topic::WordCount& here : top[k]) {
      words.push_back(model.vocabulary[here.word]);
      text.append(1, ' ').append(model.vocabulary[here.word]);
    }
    const double share = tokens > 0 ? static_cast<double>(model.totals[k]) / static_cast<double>(tokens) : 0;
    if (options.json) {
      const learn::Json line{{"topic", k}, {"share", share}, {"alpha", model.prior.alpha[k]}, {"words", words}};
      fmt::print("{}\n", line.dump(-1, ' ', false, learn::Json::error_handler_t::replace));
    } else {
      fmt::print("{:>5} {:>5.1f} % {}\n", k, 100 * share, text);
    }
  }
  return 0;
}

}  // namespace

Action declare_topics_show(CLI::App& app) {
  const auto options = std::make_shared<ShowTopicsOptions>();
  app.add_option("model", options->model, "folder that shoal topics train left")->required();
  flag(app, "--topics", options->topics, "only that many, those with the most tokens");
  flag(app, "--words", options->words, "of each topic, the most frequent (default: 10)");
  flag(app, "--page", options->page, "write the page to explore them into this file");
  switch_on(app, "--json", options->json, "lines for machines");
  return [options](const Words&) { return show(*options); };
}

}  // namespace shoal::app
