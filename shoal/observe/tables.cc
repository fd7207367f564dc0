#include "shoal/observe/tables.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "shoal/core/text.h"

namespace shoal::observe {
namespace {

// Columns as wide as their widest cell; the first is text, the others stand right.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { add(std::move(head)); }
  void add(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }

  std::string text() const {
    std::vector<std::size_t> width(rows_.front().size(), 0);
    for (const auto& row : rows_) {
      for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
    }
    std::string text;
    for (const auto& row : rows_) {
      std::string line = fmt::format("{:<{}}", row[0], width[0]);
      for (std::size_t i = 1; i < row.size(); ++i) line += fmt::format("  {:>{}}", row[i], width[i]);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

std::string share(double part, double whole) { return whole > 0 ? fmt::format("{:.1f}%", 100 * part / whole) : "-"; }
std::string milliseconds(double seconds) { return fmt::format("{:.2f}", 1e3 * seconds); }
std::string mega(double bytes) { return fmt::format("{:.1f}", bytes / 1e6); }

std::string waited_for(const RankAccount& rank) {
  std::vector<std::pair<double, int>> peers;
  for (const auto& [peer, seconds] : rank.waited_for) peers.emplace_back(seconds, peer);
  std::sort(peers.rbegin(), peers.rend());
  std::string text;
  for (const auto& [seconds, peer] : peers) {
    if (!text.empty()) text += ", ";
    text += fmt::format("rank {}: {}", peer, show_seconds(seconds));
  }
  return text.empty() ? "-" : text;
}

std::vector<std::string> time_row(const std::string& who, const TimeSpent& spent, const std::string& waited) {
  const auto cell = [&](double seconds) { return fmt::format("{:.2f} s {:>6}", seconds, share(seconds, spent.whole())); };
  return {who,
          fmt::format("{:.2f} s", spent.whole()),
          cell(spent.forward),
          cell(spent.backward),
          cell(spent.optimizer),
          cell(spent.network),
          cell(spent.waiting),
          cell(spent.other),
          waited};
}

}  // namespace

std::string time_table(const Account& account) {
  Table table({"member", "time", "forward", "backward", "optimizer", "network", "waiting", "other", "waited for"});
  for (const RankAccount& rank : account.ranks) {
    table.add(time_row(fmt::format("rank {}", rank.rank), rank.spent, waited_for(rank)));
  }
  if (account.ranks.size() > 1) table.add(time_row("mean", account.mean, ""));
  std::string text = table.text();
  for (const std::string& note : account.notes) text += note + "\n";
  return text;
}

std::string tensor_table(const Account& account, std::size_t most_rows) {
  Table table({"tensor", "way", "size", "sent", "on its way ms", "predicted exposed ms", "exposed ms", "waited ms", "hidden"});
  // The order of the plan; where there are too many, those with the most exposed time.
  std::vector<std::size_t> shown(account.tensors.size());
  std::iota(shown.begin(), shown.end(), std::size_t{0});
  if (shown.size() > most_rows) {
    const auto& tensors = account.tensors;
    std::stable_sort(shown.begin(), shown.end(),
                     [&](std::size_t a, std::size_t b) { return tensors[a].exposed > tensors[b].exposed; });
    shown.resize(most_rows);
    std::sort(shown.begin(), shown.end());
  }
  for (const std::size_t i : shown) {
    const TensorAccount& tensor = account.tensors[i];
    const bool exchanged = tensor.exchanges > 0;
    table.add({tensor.name, tensor.way.empty() ? "-" : tensor.way, tensor.bytes > 0 ? show_size(tensor.bytes) : "-",
               exchanged ? show_size(tensor.sent) : "-",
               exchanged ? milliseconds(tensor.seconds) : "-",
               tensor.predicted_exposed ? milliseconds(*tensor.predicted_exposed) : "-", milliseconds(tensor.exposed),
               milliseconds(tensor.waited), exchanged ? share(tensor.hidden, 1) : "-"});
  }
  std::string text = table.text();
  if (shown.size() < account.tensors.size()) {
    text += fmt::format("({} more, each with less exposed time)\n", account.tensors.size() - shown.size());
  }
  return text;
}

std::string link_table(const Account& account) {
  // All bytes first, those of the start and of the probes with them.
  Table table({"link", "MB", "MB/s", "MB in training", "MB/s at its fastest there"});
  for (const LinkAccount& link : account.links) {
    table.add({fmt::format("{} -> {}", link.from, link.to), mega(link.bytes), mega(link.rate()), mega(link.in_training), mega(link.fastest)});
  }
  return table.text();
}

}  // namespace shoal::observe
