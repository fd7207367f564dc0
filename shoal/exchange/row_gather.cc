#include "shoal/exchange/row_gather.h"

#include <algorithm>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::exchange {
namespace {

using collective::Collective;

constexpr std::uint64_t kMostRowBytes = std::uint64_t{1} << 36;  // of one unit's rows: more is not meant

std::uint64_t bytes_of_row(const std::vector<RowGather::Column>& columns) {
  std::uint64_t bytes = 0;
  for (const auto& column : columns) bytes += column.width * size_of(column.type);
  return bytes;
}

}  // namespace

RowTransfers::RowTransfers(std::uint32_t ranks, std::uint64_t rows_of_a_member, std::uint64_t row_bytes, const collective::LinkModel& link) {
  const auto cheapest = [&](std::uint64_t elements, std::uint64_t bytes) {
    Leg leg{.collective = Collective::all_gather, .elements = ranks * elements, .element_bytes = bytes};
    leg.program = collective::choose(leg.collective, ranks, leg.bytes(), link);
    return leg;
  };
  heads = cheapest(1, sizeof(RowGather::Head));
  rows = cheapest(rows_of_a_member, row_bytes);
}

RowGather::RowGather(Courier& courier, Programs& programs, const RowTransfers& by, std::vector<Column> columns)
    : courier_(courier),
      heads_program_(programs.named(Collective::all_gather, by.heads.program)),
      rows_program_(programs.named(Collective::all_gather, by.rows.program)),
      columns_(std::move(columns)),
      row_bytes_(bytes_of_row(columns_)),
      heads_(courier.runner().size()),
      memory_(columns_.size()),
      at_(columns_.size()) {}

void RowGather::start(Own own, const collective::Run& run, std::function<bool()> counted, net::Done done) {
  own_ = std::move(own);
  run_ = run;
  run_.scaling = {};
  counted_ = std::move(counted);
  done_ = std::move(done);
  failure_ = nullptr;
  own_head_ = {own_.rows, own_.marked};
  collective::Run heads = run_;
  heads.type = DType::i64;
  heads.slice_bytes = net::kUrgentLimit;
  heads.priority.cls = net::Class::urgent;
  heads.label = run.label + ": rows";
  const auto numbers = heads_.size() * sizeof(Head) / sizeof(std::uint64_t);
  const auto layout = collective::Layout::even(heads_program_.program(), courier_.runner().rank(), numbers);
  courier_.start(heads_program_, layout, {reinterpret_cast<const std::byte*>(&own_head_), reinterpret_cast<std::byte*>(heads_.data())}, heads,
                 [this](const net::Failure& why) {
                   waiting_ = 1;  // held while the rows are started, so that done runs last
                   failure_ = why ? why : read_heads();
                   if (!failure_ && counted_()) gather();
                   arrived(nullptr);
                 });
}

// A member of this job is believed, but what it says is multiplied and allocated.
net::Failure RowGather::read_heads() {
  rows_.clear();
  total_ = 0;
  marked_ = false;
  for (std::size_t rank = 0; rank < heads_.size(); ++rank) {
    const Head& head = heads_[rank];
    if (head.rows > kMostRowBytes / row_bytes_ || head.marked > 1) {
      return courier_.mismatch(rank, std::to_string(head.rows) + " rows of " + run_.label);
    }
    rows_.push_back(head.rows);
    total_ += head.rows;
    marked_ = marked_ || head.marked;
  }
  return nullptr;
}

void RowGather::gather() {
  if (total_ == 0) return;
  try {
    for (std::size_t c = 0; c < columns_.size(); ++c) at_[c] = memory_[c].get(total_ * columns_[c].width * size_of(columns_[c].type));
  } catch (const Error& error) {
    failure_ = std::make_shared<Error>(error);
    return courier_.runner().transport().fail(error);
  }
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    collective::Layout layout;
    for (const std::uint64_t rows : rows_) {
      layout.output.push_back(layout.count.empty() ? 0 : layout.output.back() + layout.count.back());
      layout.count.push_back(rows * columns_[c].width);
    }
    layout.input.assign(layout.count.size(), 0);  // the own chunk alone
    collective::Run run = run_;
    run.type = columns_[c].type;
    run.operation += 1 + c;
    ++waiting_;
    courier_.start(rows_program_, layout, {own_.columns[c], at_[c]}, run, [this](const net::Failure& why) { arrived(why); });
  }
}

void RowGather::arrived(const net::Failure& why) {
  if (why && !failure_) failure_ = why;
  if (--waiting_ > 0) return;
  std::exchange(done_, nullptr)(failure_);
}

}  // namespace shoal::exchange
