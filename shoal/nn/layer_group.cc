#include "shoal/nn/layer_group.h"

#include <ATen/Functions.h>

#include <numeric>
#include <utility>

#include "shoal/collective/build.h"

namespace shoal::nn {
namespace {

using collective::Collective;
using collective::Layout;

constexpr std::int64_t kNone = -1;  // in place of a layer: no more calls
constexpr const char* kHint = "raise SHOAL_TIMEOUT if a member may be this slow";

collective::Verified direct(Collective kind, const exchange::Strips& strips) {
  return collective::verify(collective::build(kind, "direct", strips.members()));
}

std::vector<std::uint64_t> positions(const std::vector<std::uint64_t>& counts) {
  std::vector<std::uint64_t> begins(counts.size());
  std::exclusive_scan(counts.begin(), counts.end(), begins.begin(), std::uint64_t{0});
  return begins;
}

std::vector<std::uint64_t> elements(const RowCounts& rows, std::int64_t width) {
  std::vector<std::uint64_t> counts;
  for (const auto k : rows) counts.push_back(static_cast<std::uint64_t>(k * width));
  return counts;
}

std::int64_t sum(const RowCounts& rows) { return std::accumulate(rows.begin(), rows.end(), std::int64_t{0}); }

at::Tensor new_rows(const at::Tensor& like, std::int64_t rows, std::int64_t width) { return at::empty({rows, width}, like.options()); }

// What goes from the member at place s to that at place d is chunk s M + d. `there[d]` elements from here to d, `here[s]` from s to here, each
// side by side in input and output.
Layout exchanged(std::uint32_t place, const std::vector<std::uint64_t>& there, const std::vector<std::uint64_t>& here) {
  const auto members = static_cast<std::uint32_t>(there.size());
  Layout layout;
  layout.count.assign(members * members, 0);
  layout.input = layout.output = layout.count;
  const auto to = positions(there), from = positions(here);
  for (std::uint32_t other = 0; other < members; ++other) {
    layout.count[place * members + other] = there[other];
    layout.input[place * members + other] = to[other];
    layout.count[other * members + place] = here[other];
    layout.output[other * members + place] = from[other];
  }
  return layout;
}

}  // namespace

LayerGroup::LayerGroup(Session& session, const exchange::Strips& strips)
    : session_(session),
      strips_(strips),
      place_(strips.place(session.rank())),
      channel_(session.new_channel()),
      runner_(std::make_shared<collective::Runner>(session.transport(), strips.group_of(session.rank()))),
      gathering_(direct(Collective::all_gather, strips)),
      scattering_(direct(Collective::reduce_scatter, strips)),
      exchanging_(direct(Collective::all_to_all, strips)) {}

LayerGroup::~LayerGroup() { collective::let_go(runner_); }

collective::Started LayerGroup::start(const collective::Verified& program, const Layout& layout, const at::Tensor& input, const at::Tensor& output,
                                      const std::string& label, net::Priority priority) {
  collective::Run run;
  run.priority = priority;
  run.type = input.scalar_type() == at::kLong ? DType::i64 : DType::f32;
  run.operation = net::operation_in(channel_, operations_++);
  run.label = label;
  return {*runner_, program, layout,
          {static_cast<const std::byte*>(input.const_data_ptr()), static_cast<std::byte*>(output.mutable_data_ptr())}, run};
}

void LayerGroup::run(const collective::Verified& program, const Layout& layout, const at::Tensor& input, const at::Tensor& output,
                     const std::string& label) {
  start(program, layout, input, output, label).wait(session_.transport().now() + session_.patience(), kHint);
}

// Urgent: it waits for nobody's leave, and gets there though this member has gone on, or ended.
LayerGroup::Count LayerGroup::tell(std::int64_t layer, std::int64_t rows, const std::string& label) {
  const auto own = at::tensor({layer, rows}, at::kLong);
  const auto all = at::empty({strips_.members(), 2}, at::kLong);
  return {own, all, start(gathering_, Layout::even(gathering_.program(), place_, 2 * std::uint64_t{strips_.members()}), own, all, label, net::kUrgent)};
}

std::optional<RowCounts> LayerGroup::count(std::int64_t rows, std::int64_t layer, const std::string& name) {
  if (over_) return std::nullopt;
  auto told = tell(layer, rows, "rows of " + name);
  told.started.wait(session_.transport().now() + session_.patience(), kHint);
  RowCounts counts;
  bool same = true;
  for (std::uint32_t p = 0; p < strips_.members(); ++p) {
    const auto called = told.all[p][0].item<std::int64_t>();
    over_ = over_ || called == kNone;
    same = same && called == layer;
    counts.push_back(told.all[p][1].item<std::int64_t>());
  }
  return same ? std::optional(counts) : std::nullopt;
}

void LayerGroup::end_round() {
  if (!over_) ending_.emplace(tell(kNone, 0, "end of the forward pass"));
}

void LayerGroup::next_round() {
  if (ending_) ending_->started.wait(session_.transport().now() + session_.patience(), kHint);
  ending_.reset();
  over_ = false;
}

at::Tensor LayerGroup::gather(const at::Tensor& x, const RowCounts& rows, const std::string& name) {
  auto all = new_rows(x, sum(rows), x.size(1));
  Layout layout{elements(rows, x.size(1)), std::vector<std::uint64_t>(rows.size(), 0), {}};
  layout.output = positions(layout.count);
  run(gathering_, layout, x, all, "inputs of " + name);
  return all;
}

at::Tensor LayerGroup::to_owners(const at::Tensor& y, const RowCounts& rows, std::uint64_t outputs, const std::string& name) {
  const exchange::Strips strips{strips_.ranks, strips_.groups, outputs};
  std::vector<std::uint64_t> here;
  for (std::uint32_t p = 0; p < strips.members(); ++p) here.push_back(static_cast<std::uint64_t>(own(rows)) * strips.rows(p));
  const auto parts = new_rows(y, own(rows), static_cast<std::int64_t>(outputs)).view({-1});
  run(exchanging_, exchanged(place_, elements(rows, y.size(1)), here), y, parts, "outputs of " + name);
  std::vector<at::Tensor> blocks;
  std::int64_t begin = 0;
  for (std::uint32_t p = 0; p < strips.members(); ++p) {
    const auto width = static_cast<std::int64_t>(strips.rows(p));
    blocks.push_back(parts.narrow(0, begin, own(rows) * width).view({own(rows), width}));
    begin += own(rows) * width;
  }
  return at::cat(blocks, 1);
}

at::Tensor LayerGroup::to_strips(const at::Tensor& g, const RowCounts& rows, const std::string& name) {
  const exchange::Strips strips{strips_.ranks, strips_.groups, static_cast<std::uint64_t>(g.size(1))};
  const auto width = static_cast<std::int64_t>(strips.rows(place_));
  std::vector<std::uint64_t> there;
  std::vector<at::Tensor> blocks;
  for (std::uint32_t p = 0; p < strips.members(); ++p) {
    const auto columns = static_cast<std::int64_t>(strips.rows(p));
    there.push_back(static_cast<std::uint64_t>(own(rows) * columns));
    blocks.push_back(g.narrow(1, static_cast<std::int64_t>(strips.first(p)), columns).reshape({-1}));
  }
  auto all = new_rows(g, sum(rows), width);
  run(exchanging_, exchanged(place_, there, elements(rows, width)), at::cat(blocks), all, "output gradients of " + name);
  return all;
}

std::unique_ptr<LayerGroup::Sum> LayerGroup::start_reduce(const at::Tensor& dx, const RowCounts& rows, const std::string& name) {
  const auto mine = new_rows(dx, own(rows), dx.size(1));
  Layout layout{elements(rows, dx.size(1)), {}, std::vector<std::uint64_t>(rows.size(), 0)};
  layout.input = positions(layout.count);
  return std::make_unique<Sum>(start(scattering_, layout, dx, mine, "input gradients of " + name), dx, mine, session_);
}

LayerGroup::Sum::Sum(collective::Started started, at::Tensor all, at::Tensor own, Session& session)
    : session_(session), started_(std::move(started)), all_(std::move(all)), own_(std::move(own)) {}

LayerGroup::Sum::~Sum() {
  if (waited_) return;
  try {
    started_.wait(session_.transport().now());
  } catch (const Error&) {  // that it was cut short, or what had ended it
  }
}

at::Tensor LayerGroup::Sum::wait() {
  waited_ = true;
  started_.wait(session_.transport().now() + session_.patience(), kHint);
  return own_;
}

}  // namespace shoal::nn
