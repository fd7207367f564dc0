#include "shoal/exchange/factor_flow.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::exchange {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 36;  // of one layer's rows: more is not meant

}  // namespace

FactorFlow::FactorFlow(collective::Runner& runner, factor::Shape shape, FactorPrograms programs)
    : runner_(runner), shape_(shape), programs_(programs), heads_(runner.size()) {}

void FactorFlow::start(const factor::Pair& own, std::vector<double> weights, const collective::Run& run, net::Done done) {
  own_ = own;
  run_ = run;
  done_ = std::move(done);
  failure_ = nullptr;
  gathered_ = {};
  gathered_.weight = std::move(weights);
  gathered_.divisor = run.scaling.divisor;
  own_head_ = {own.rows, own.rest != nullptr};
  collective::Run heads = run;
  heads.type = DType::i64;
  heads.scaling = {};
  heads.slice_bytes = net::kUrgentLimit;
  heads.priority.cls = net::Class::urgent;
  heads.label = run.label + ": rows";
  const auto layout = collective::Layout::even(programs_.heads->program(), runner_.rank(), heads_.size() * sizeof(factor::Head) / sizeof(std::uint64_t));
  runner_.start(*programs_.heads, layout, {reinterpret_cast<const std::byte*>(&own_head_), reinterpret_cast<std::byte*>(heads_.data())}, heads,
                [this](const net::Failure& why) {
                  waiting_ = 1;  // held while the rest is started, so that done runs last
                  failure_ = why ? why : check();
                  if (!failure_) place();
                  arrived(nullptr);
                });
}

// A member of this job is believed, but what it says is multiplied and allocated.
net::Failure FactorFlow::check() const {
  for (std::size_t rank = 0; rank < heads_.size(); ++rank) {
    if (heads_[rank].rows <= kMostBytes / shape_.row_bytes() && heads_[rank].has_rest <= 1) continue;
    return std::make_shared<Error>(Code::mismatch, "rank " + std::to_string(rank) + " has " + std::to_string(heads_[rank].rows) + " rows of " + run_.label,
                                   "exchange", "run the same code on every member");
  }
  return nullptr;
}

void FactorFlow::place() {
  for (const factor::Head& head : heads_) gathered_.rows.push_back(head.rows);
  gathered_.total = std::accumulate(gathered_.rows.begin(), gathered_.rows.end(), std::uint64_t{0});
  try {
    if (gathered_.total > 0) {
      std::byte* const x = x_.get(gathered_.total * shape_.inputs * size_of(shape_.type));
      std::byte* const g = g_.get(gathered_.total * shape_.outputs * size_of(shape_.type));
      gathered_.x = x;
      gathered_.g = g;
      gather(shape_.inputs, own_.x, x, 1);
      gather(shape_.outputs, own_.g, g, 2);
    }
    if (std::any_of(heads_.begin(), heads_.end(), [](const factor::Head& head) { return head.has_rest != 0; })) add_rest();
  } catch (const Error& error) {  // no memory
    failure_ = std::make_shared<Error>(error);
    runner_.transport().fail(error);
  }
}

void FactorFlow::gather(std::uint64_t width, const std::byte* own, std::byte* all, std::uint64_t part) {
  collective::Layout layout;
  for (const std::uint64_t rows : gathered_.rows) {
    layout.output.push_back(layout.count.empty() ? 0 : layout.output.back() + layout.count.back());
    layout.count.push_back(rows * width);
  }
  layout.input.assign(layout.count.size(), 0);  // the own chunk alone
  collective::Run run = run_;
  run.scaling = {};
  run.operation += part;
  ++waiting_;
  runner_.start(*programs_.rows, layout, {own, all}, run, [this](const net::Failure& why) { arrived(why); });
}

void FactorFlow::add_rest() {
  std::byte* const mean = rest_.get(shape_.dense_bytes());
  const std::byte* own = own_.rest;
  if (!own) {
    std::byte* const zeros = zeros_.get(shape_.dense_bytes());
    std::fill_n(zeros, shape_.dense_bytes(), std::byte{0});
    own = zeros;
  }
  gathered_.rest = mean;
  collective::Run run = run_;
  run.operation += 3;
  ++waiting_;
  runner_.start(*programs_.rest, collective::Layout::even(programs_.rest->program(), runner_.rank(), shape_.inputs * shape_.outputs), {own, mean},
                run, [this](const net::Failure& why) { arrived(why); });
}

void FactorFlow::arrived(const net::Failure& why) {
  if (why && !failure_) failure_ = why;
  if (--waiting_ > 0) return;
  std::exchange(done_, nullptr)(failure_);
}

}  // namespace shoal::exchange
