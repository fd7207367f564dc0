#include "shoal/collective/run.h"

#include <algorithm>
#include <list>
#include <utility>

#include <fmt/format.h>

#include "shoal/collective/compiled.h"
#include "shoal/collective/operation.h"
#include "shoal/collective/started.h"
#include "shoal/net/call.h"

namespace shoal::collective {
namespace {

constexpr std::size_t kKeepScratch = 64 << 20;  // bytes of unused windows that a runner keeps
constexpr std::size_t kKeepCompiled = 64;       // programs

}  // namespace

std::uint32_t place_in(const std::vector<net::Rank>& members, net::Rank rank) {
  const auto found = std::find(members.begin(), members.end(), rank);
  if (found == members.end()) {
    throw Error(Code::invalid_argument, fmt::format("rank {} is not a member of the group it wants to run in", rank));
  }
  return static_cast<std::uint32_t>(found - members.begin());
}

Group::Group(net::Transport& of_transport, std::vector<net::Rank> of_members)
    : transport(of_transport), members(std::move(of_members)), rank(place_in(members, transport.rank())), pool(kKeepScratch) {}

namespace {

void end_group(Group& group, const net::Failure& why) {
  if (group.lost) return;
  group.lost = why;
  const auto open = group.open;  // ending one takes it off the list
  for (const auto& operation : open) operation->end(why);
  for (const auto& weak : std::exchange(group.parts, {})) {
    if (const auto part = weak.lock()) end_group(*part, why);
  }
}

}  // namespace

struct Runner::Impl {
  Impl(net::Transport& transport, std::vector<net::Rank> members)
      : group(std::make_shared<Group>(transport, std::move(members))) {}

  std::shared_ptr<const Compiled> compiled(const Verified& program);

  std::shared_ptr<Group> group;
  std::list<std::shared_ptr<const Compiled>> programs;  // last used first
};

std::shared_ptr<const Compiled> Runner::Impl::compiled(const Verified& program) {
  // Equal addresses are equal programs: an entry keeps its program alive.
  const auto same = [&](const auto& entry) { return &entry->program() == &program.program(); };
  const auto found = std::find_if(programs.begin(), programs.end(), same);
  if (found != programs.end()) {
    programs.splice(programs.begin(), programs, found);
  } else {
    programs.push_front(std::make_shared<const Compiled>(program, group->rank));
    if (programs.size() > kKeepCompiled) programs.pop_back();
  }
  return programs.front();
}

void Runner::end(const net::Failure& why) { end_group(*impl_->group, why); }

// A group that has lost a member ends as a whole: who waits for somebody that waits for the lost one would wait for ever.
Runner::Runner(net::Transport& transport, std::vector<net::Rank> members)
    : impl_(std::make_shared<Impl>(transport, std::move(members))) {
  if (transport.on_peer_lost() == net::OnPeerLost::fail) return;  // then the transport ends all
  transport.post([&transport, weak = std::weak_ptr<Group>(impl_->group)] {
    if (weak.expired()) return;
    transport.on_lost([weak](net::Rank lost, const net::Failure& why) {
      const auto group = weak.lock();
      if (group && std::ranges::find(group->members, lost) != group->members.end()) end_group(*group, why);
    });
  });
}

Runner::~Runner() {
  if (!impl_) return;
  const auto closing = std::make_shared<const Error>(Code::cancelled, "the group of members is closing");
  // From here on open operations are held by the transport's handlers alone.
  for (const auto& operation : std::exchange(impl_->group->open, {})) operation->end(closing);
}

void let_go(std::shared_ptr<Runner>& runner) {
  if (!runner) return;
  net::Transport& transport = runner->transport();
  net::call(transport, [going = std::exchange(runner, nullptr)]() mutable { going.reset(); });
}

std::uint32_t Runner::rank() const { return impl_->group->rank; }
std::uint32_t Runner::size() const { return static_cast<std::uint32_t>(impl_->group->members.size()); }
const std::vector<net::Rank>& Runner::members() const { return impl_->group->members; }
net::Transport& Runner::transport() { return impl_->group->transport; }

std::shared_ptr<Runner> Runner::among(std::vector<net::Rank> members) {
  auto part = std::make_shared<Runner>(transport(), std::move(members));
  transport().post([whole = impl_->group, weak = std::weak_ptr(part->impl_->group)] {
    const auto group = weak.lock();
    if (!group) return;
    std::erase_if(whole->parts, [](const auto& other) { return other.expired(); });
    whole->lost ? end_group(*group, whole->lost) : whole->parts.push_back(weak);
  });
  return part;
}

void Runner::start(const Verified& program, const Layout& layout, Buffers buffers, const Run& run, net::Done done) {
  const Program& plan = program.program();
  if (plan.ranks != size()) {
    throw Error(Code::invalid_argument, fmt::format("a program for {} members in a group of {}", plan.ranks, size()),
                run.label);
  }
  if (layout.count.size() != plan.chunks || layout.input.size() != plan.chunks || layout.output.size() != plan.chunks) {
    throw Error(Code::invalid_argument, fmt::format("the layout must name all {} chunks of {}", plan.chunks, plan.name),
                run.label);
  }
  for (std::uint32_t chunk = 0; chunk < plan.chunks; ++chunk) {
    if (layout.count[chunk] == 0 || !is_empty(plan, chunk)) continue;
    throw Error(Code::invalid_argument, fmt::format("{} elements in chunk {} of {}, whose share is 0", layout.count[chunk], chunk, plan.name),
                run.label);
  }
  if (const net::Failure why = impl_->group->lost) return transport().post([done = std::move(done), why] { done(why); });
  const auto operation =
      std::make_shared<Operation>(impl_->group, impl_->compiled(program), layout, buffers, run, std::move(done));
  impl_->group->open.push_back(operation);
  operation->begin();
}

void Runner::run(const Verified& program, const Layout& layout, Buffers buffers, const Run& run, Instant deadline) {
  Started(*this, program, layout, buffers, run).wait(deadline);
}

void Runner::cancel(std::uint64_t operation, const net::Failure& why) {
  const auto open = impl_->group->open;  // ending one takes it off the list
  for (const auto& one : open) {
    if (one->id() == operation) one->end(why);
  }
}

std::vector<std::string> Runner::waiting() const {
  std::vector<std::string> lines;
  for (const auto& operation : impl_->group->open) operation->describe(lines);
  return lines;
}

}  // namespace shoal::collective
