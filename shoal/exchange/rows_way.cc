// By its rows: of a table's gradient those rows travel that are not zero, with their numbers (u (8 + width x size) bytes a member in place
// of the table). All members lay them side by side and add, row by row, in rank order: the bits are those of a left fold of the
// gradients themselves, but for the sign of a zero. Where the rows are more than the table, the table travels.
#include <algorithm>
#include <cstring>
#include <utility>

#include "shoal/core/reduce.h"
#include "shoal/exchange/gathered_flow.h"
#include "shoal/exchange/ways.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

constexpr std::uint64_t kIndexBytes = sizeof(std::int64_t);

std::uint64_t row_bytes(const TensorSpec& table) { return table.width * size_of(table.type); }

RowTransfers row_transfers(const TensorSpec& table, std::uint32_t ranks, const collective::LinkModel& link) {
  return {ranks, table.touched, kIndexBytes + row_bytes(table), link};
}

bool is_zero(const std::byte* row, std::uint64_t bytes) {
  return bytes == 0 || (row[0] == std::byte{0} && std::memcmp(row, row + 1, bytes - 1) == 0);
}

// As the rows are added.
std::string in_rank_order(const Road& road, std::uint64_t bytes) {
  return collective::choose(Collective::all_reduce, road.plan.ranks, static_cast<double>(bytes), road.plan.link, true);
}

class RowFlow final : public GatheredFlow {
 public:
  RowFlow(const Road& road, const TensorSpec& table)
      : GatheredFlow(road, table, row_transfers(table, road.plan.ranks, road.plan.link), {{DType::i64, 1}, {table.type, table.width}},
                     road.programs.named(Collective::all_reduce, in_rank_order(road, table.count * size_of(table.type)))),
        type_(table.type),
        sparse_(table.sparse),
        width_(table.width),
        table_rows_(table.count / table.width),
        picked_values_(road.runner.transport()) {}

  void take(std::size_t, const Contribution& own) override {
    own_ = {};
    dense_ = nullptr;
    results_.begin();
    merged_values_.begin();
    if (const auto* rows = std::get_if<Rows>(&own)) own_ = *rows;
    if (const auto* dense = std::get_if<const std::byte*>(&own)) pick(*dense);
    if (!sparse_) output_ = results_.get(table_bytes());
    merged_ = false;
  }

  void start(const Departure& departure, net::Done done) override {
    weights_ = departure.weights;
    whole_table_ = false;
    gather(departure, {own_.count, false, {reinterpret_cast<const std::byte*>(own_.index), own_.values}}, std::move(done));
  }

  Mean mean(std::size_t) override {
    if (!merged_ && !whole_table_) merge();
    merged_ = true;
    return sparse_ ? Mean(&mean_) : Mean(output_);
  }
  std::shared_ptr<const void> memory() const override { return sparse_ ? merged_values_.share() : results_.share(); }

 private:
  std::uint64_t row_bytes() const { return width_ * size_of(type_); }
  std::uint64_t table_bytes() const { return table_rows_ * row_bytes(); }

  void pick(const std::byte* dense) {
    dense_ = dense;
    results_.avoid(dense, table_bytes());
    picked_.clear();
    for (std::uint64_t r = 0; r < table_rows_; ++r) {
      if (!is_zero(dense + r * row_bytes(), row_bytes())) picked_.push_back(static_cast<std::int64_t>(r));
    }
    std::byte* values = picked_values_.get(picked_.size() * row_bytes());
    own_ = {picked_.size(), picked_.data(), values};
    for (const auto r : picked_) values = std::copy_n(dense + static_cast<std::uint64_t>(r) * row_bytes(), row_bytes(), values);
  }

  bool counted() override {
    whole_table_ = !sparse_ && rows().total() * (kIndexBytes + row_bytes()) > 2 * table_bytes();
    if (whole_table_) add_whole(dense_, output_);
    return !whole_table_;
  }

  net::Failure arrived() override { return whole_table_ ? nullptr : check(); }

  // Numbers from other members are places to write to.
  net::Failure check() {
    std::uint64_t at = 0;
    for (std::size_t rank = 0; rank < rows().rows().size(); ++rank) {
      const auto* const index = reinterpret_cast<const std::int64_t*>(rows().column(0)) + at;
      const auto count = rows().rows()[rank];
      for (std::uint64_t k = 0; k < count; ++k) {
        const bool sound = index[k] >= (k > 0 ? index[k - 1] + 1 : 0) && static_cast<std::uint64_t>(index[k]) < table_rows_;
        if (sound) continue;
        return courier().mismatch(rank, "row " + std::to_string(index[k]) + " of " + run().label);
      }
      at += count;
    }
    return nullptr;
  }

  // Every distinct row, ascending: the sum of whoever has it, in rank order, divided once.
  void merge() {
    const auto& counts = rows().rows();
    const std::uint64_t total = rows().total();
    struct Cursor {
      const std::int64_t *index, *end;
      std::byte* values;
    };
    std::vector<Cursor> cursors;
    const auto* index = reinterpret_cast<const std::int64_t*>(rows().column(0));
    auto* values = total > 0 ? rows().column(1) : nullptr;
    for (std::size_t rank = 0; rank < counts.size() && total > 0; ++rank) {
      if (!weights_.empty() && counts[rank] > 0) scale(type_, values, values, weights_[rank], counts[rank] * width_);
      cursors.push_back({index, index + counts[rank], values});
      index += counts[rank];
      values += counts[rank] * row_bytes();
    }
    merged_index_.clear();
    std::byte* into = sparse_ ? merged_values_.get(total * row_bytes()) : output_;
    if (!sparse_) std::fill_n(output_, table_bytes(), std::byte{0});
    std::vector<const void*> terms;
    for (;;) {
      std::int64_t row = static_cast<std::int64_t>(table_rows_);
      for (const auto& cursor : cursors) {
        if (cursor.index != cursor.end) row = std::min(row, *cursor.index);
      }
      if (static_cast<std::uint64_t>(row) == table_rows_) break;
      terms.clear();
      for (auto& cursor : cursors) {
        if (cursor.index == cursor.end || *cursor.index != row) continue;
        terms.push_back(cursor.values);
        ++cursor.index;
        cursor.values += row_bytes();
      }
      std::byte* const place = sparse_ ? into + merged_index_.size() * row_bytes() : into + static_cast<std::uint64_t>(row) * row_bytes();
      fold(type_, ReduceOp::sum, place, terms, width_);
      if (run().scaling.divisor != 1) divide(type_, place, run().scaling.divisor, width_);
      merged_index_.push_back(row);
    }
    mean_ = {merged_index_.size(), merged_index_.data(), into};
  }

  const DType type_;
  const bool sparse_;
  const std::uint64_t width_, table_rows_;

  Rows own_;
  const std::byte* dense_ = nullptr;
  std::vector<std::int64_t> picked_;
  Buffer picked_values_;
  std::vector<double> weights_;
  bool whole_table_ = false;

  bool merged_ = false;
  std::vector<std::int64_t> merged_index_;
  Results merged_values_;
  Results results_;
  std::byte* output_ = nullptr;
  Rows mean_;
};

class RowsWay final : public Way {
 public:
  using Way::Way;
  bool is_sized() const override { return false; }
  bool carries(const TensorSpec& tensor) const override { return tensor.width > 0; }
  std::vector<Leg> legs(const Load& load) const override {
    const auto by = row_transfers(load.first, load.ranks, load.link);
    return {by.heads, by.rows};
  }
  double computing(const Load& load) const override {
    const double table = load.first.sparse ? 0 : 2 * load.bytes();  // looked through, and written
    const auto added = static_cast<double>(load.ranks * load.first.touched * row_bytes(load.first));
    return (table + added) / load.link.add_rate;
  }
  std::unique_ptr<Flow> flow(const Road& road) const override {
    return std::make_unique<RowFlow>(road, road.plan.tensors[road.unit.tensors.front()]);
  }
};

}  // namespace

std::shared_ptr<const Way> make_rows_way(const WayName& name) { return std::make_shared<RowsWay>(name.text()); }

}  // namespace shoal::exchange
