#include "shoal/nn/backend.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <numeric>
#include <string_view>
#include <torch/version.h>

#include "shoal/collective/hosts.h"
#include "shoal/net/tcp.h"
#include "shoal/nn/backend_call.h"
#include "shoal/nn/group/group_networks.h"
#include "shoal/nn/store_rendezvous.h"
#include "shoal/nn/torch_error.h"

namespace shoal::nn {
namespace {

// Groups of this process that may still be open.
struct GroupRegistry {
  std::mutex mutex;  // guards groups
  std::vector<std::weak_ptr<Group>> groups;
  static GroupRegistry& local() {
    static GroupRegistry registry;
    return registry;
  }
  void add(const std::shared_ptr<Group>& group) {
    const std::lock_guard lock(mutex);
    std::erase_if(groups, [](const auto& weak) { return weak.expired(); });
    groups.push_back(group);
  }
};

bool checks_every_call() {
  const char* const asked = std::getenv("SHOAL_CHECK");
  return (asked && std::string_view(asked) != "0") || c10d::debug_level() == c10d::DebugLevel::Detail;
}

struct Joined {
  std::shared_ptr<Group> group;
  std::shared_ptr<const void> network;  // kept: groups of its members go by it
};
Joined join(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout, const GroupNetworks::Ranks& ranks) {
  TORCH_CHECK(size > 0 && rank >= 0 && rank < size, "shoal: rank ", rank, " does not fit a group of ", size);
  net::Place place;
  place.launcher = net::Place::Launcher::torchrun;
  place.rank = static_cast<net::Rank>(rank);
  place.size = static_cast<net::Rank>(size);
  StoreRendezvous rendezvous(store, place.rank);
  place.generation = rendezvous.epoch();
  place.job = "process group";
  const auto secret = rendezvous.secret(place.rank, timeout);
  net::JoinOptions options;
  options.patience = timeout;
  Group::Settings settings;
  settings.check = checks_every_call();
  options.settings = {{"PyTorch", TORCH_VERSION}, {"SHOAL_CHECK", settings.check ? "1" : "0"}};
  auto job = net::join_tcp(place, rendezvous, "group/", secret.bytes, options);
  const auto hosts = collective::hosts_of(job->members());
  if (secret.from_store && rank == 0 && collective::count(hosts) > 1) {
    std::fputs("shoal: the job's secret went through the process group's store, which anybody on this network may read "
               "(set SHOAL_SECRET or SHOAL_SECRET_FILE on every member)\n", stderr);
  }
  settings.link = links_of_group(*job, GroupNetworks::local(), ranks, rendezvous, timeout);
  auto network = GroupNetworks::local().add({ranks, settings.link.network});
  return {std::make_shared<Group>(std::move(job), settings), std::move(network)};
}

void end(Group& group, const Error& why) {
  try {
    group.abort(why);
  } catch (const Error&) {
    // Already closed: nothing waits.
  }
}

net::Done part_of(const c10::intrusive_ptr<Work>& work) {
  return [work](const net::Failure& failure) mutable { Work::part_done(std::move(work), failure); };
}

}  // namespace

Backend::Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size, std::chrono::milliseconds timeout,
                 Identity identity, std::optional<c10::DeviceIndex> pretended)
    : c10d::Backend(rank, size), store_(store), identity_(std::move(identity)), timeout_(timeout), pretended_(pretended) {
  if (identity_.ranks.empty()) {
    identity_.ranks.resize(members());
    std::iota(identity_.ranks.begin(), identity_.ranks.end(), std::uint64_t{0});
  }
  TORCH_CHECK(identity_.ranks.size() == members(), "shoal: a group of ", size, " cannot consist of ", identity_.ranks.size(), " ranks");
  translated([&] {
    auto joined = join(store, rank, size, timeout, identity_.ranks);
    group_ = std::move(joined.group);
    network_ = std::move(joined.network);
  });
  GroupRegistry::local().add(group_);
}

Backend::~Backend() { group_->close(); }

void Backend::close_all() {
  std::vector<std::weak_ptr<Group>> groups;
  {
    const std::lock_guard lock(GroupRegistry::local().mutex);
    groups.swap(GroupRegistry::local().groups);
  }
  for (const auto& weak : groups) {
    if (const auto group = weak.lock()) group->close();
  }
}

c10::intrusive_ptr<Backend::Options> Backend::getBackendOptions() {
  return c10::make_intrusive<Options>("shoal", timeout_.load());
}

void Backend::abort() { end(*group_, Error(Code::cancelled, "rank " + std::to_string(rank_) + " aborted the process group")); }

void Backend::shutdown() { group_->close(); }

std::chrono::milliseconds Backend::patience(std::chrono::milliseconds asked) const {
  return asked == c10d::kUnsetTimeout ? timeout_.load() : asked;
}

std::uint32_t Backend::root(std::int64_t rank) const {
  TORCH_CHECK(rank >= 0 && rank < size_, "shoal: invalid root rank: ", rank);
  return static_cast<std::uint32_t>(rank);
}

c10::intrusive_ptr<Work> Backend::begin(Call& call, c10d::OpType type, const char* title, std::chrono::milliseconds timeout,
                                        std::string name, std::uint64_t sequence) {
  call.plan.type = type;
  call.plan.title = title;
  call.plan.patience = patience(timeout);
  if (FlightRecorder::local().on()) record(call.plan, sequence);
  if (!call.copies_home.empty()) {
    call.plan.epilogue = [copies = std::move(call.copies_home)] {
      for (const auto& copy : copies) copy();
    };
  }
  return c10::make_intrusive<Work>(group_, std::move(call.plan), std::move(name), sequence);
}

// What cannot begin then is an end of the group, as what a device did not copy is: the others wait for it.
Backend::Result Backend::start_late(const c10::intrusive_ptr<Work>& work, std::shared_ptr<Departures::Copies> arriving, std::vector<std::function<void()>> parts) {
  const auto left = std::make_shared<std::size_t>(parts.size());  // that have not begun
  const auto begin = [left, parts = std::move(parts)] {
    for (const auto& part : parts) {
      part();
      --*left;
    }
  };
  const auto failed = [group = group_, work, left](const std::exception_ptr& wrong) {
    const auto why = failure_of(wrong, "a process group");
    end(*group, *why);
    const auto give_up = [work, why, count = *left] {
      for (std::size_t i = 0; i < count; ++i) Work::part_done(work, why);
    };
    if (!group->post(give_up)) give_up();
  };
  if (!arriving) arriving = std::make_shared<Departures::Copies>();
  return start(work, [&] { departures_->depart(std::move(arriving), begin, failed); });
}

Backend::Result Backend::start(const c10::intrusive_ptr<Work>& work, const std::function<void()>& fn) {
  try {
    translated(fn);
  } catch (...) {
    forget_coalescing();
    throw;
  }
  coalesce(work);
  return work;
}

void Backend::record(Work::Plan& plan, std::uint64_t sequence) {
  FlightRecorder& recorder = FlightRecorder::local();
  plan.job_rank = identity_.ranks[static_cast<std::size_t>(rank_)];
  // Not in the constructor: PyTorch describes the group after it.
  std::call_once(described_, [&] { recorder.group(identity_.name, getGroupDesc(), identity_.ranks); });

  FlightRecorder::Operation operation;
  operation.group = identity_.name;
  operation.description = getGroupDesc();
  operation.name = std::strchr(plan.title, ':') + 1;
  operation.collective = sequence;
  operation.point_to_point = c10d::isP2POp(plan.type);
  if (operation.point_to_point) {
    operation.message = ++messages_;
    const bool sends = plan.type == c10d::OpType::SEND;
    operation.name = (sends ? "send " : "recv ") + std::to_string(rank_) + (sends ? "->" : "<-") + std::to_string(*plan.peer);
  }
  operation.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(plan.patience);
  operation.inputs = plan.inputs;
  if (!plan.outputs.empty()) operation.outputs = plan.outputs.front();
  plan.recorded = recorder.began(operation);
}

at::Tensor Backend::allocateTensor(long size, at::TensorOptions options) {
  if (!options.device().is_cpu()) return at::empty({size}, options);
  const auto bytes = static_cast<std::size_t>(size) * options.dtype().itemsize();
  const auto memory = group_->lendable(bytes);
  if (!memory) return at::empty({size}, options);
  return at::from_blob(memory.get(), {size}, [memory](void*) {}, options);
}

bool Backend::leaves_now(const Call& call) const { return !call.arriving && departures_->idle(); }

Backend::Result Backend::launch(Call call, c10d::OpType type, const char* title, std::chrono::milliseconds timeout) {
  call.plan.parts = static_cast<std::uint32_t>(call.parts.size());
  const std::uint64_t before = called_.fetch_add(call.plan.parts);
  const auto work = begin(call, type, title, timeout, name(call.parts.front().operation), before + 1);
  if (leaves_now(call)) {
    return start(work, [&] {
      for (Collect& part : call.parts) group_->start(std::move(part), work->patience(), part_of(work));
    });
  }
  std::vector<std::function<void()>> parts;
  for (Collect& part : call.parts) {
    parts.emplace_back([group = group_, work, part = std::move(part)] { group->start(part, work->patience(), part_of(work)); });
  }
  return start_late(work, std::move(call.arriving), std::move(parts));
}

Backend::Result Backend::barrier(const c10d::BarrierOptions& opts) {
  Call call(*this);
  const Piece token = call.update(at::zeros({1}, at::kByte));
  Collect part;
  part.operation = Operation::barrier;
  part.total = token.size();
  part.buffers = {token.data(), token.data()};
  call.parts.push_back(std::move(part));
  return launch(std::move(call), c10d::OpType::BARRIER, "shoal:barrier", opts.timeout);
}

void Backend::monitoredBarrier(const c10d::BarrierOptions& opts, bool wait_all_ranks) {
  Call call(*this);
  const auto work = begin(call, c10d::OpType::BARRIER, "shoal:monitored_barrier", opts.timeout, "monitored_barrier", 0);
  translated([&] { group_->monitored_barrier(work->patience(), wait_all_ranks, part_of(work)); });
  work->wait(kNoTimeout);
}

// --- point to point

Backend::Result Backend::send(Tensors& tensors, int to, int tag) {
  check_single("send", tensors);
  TORCH_CHECK(to >= 0 && to < size_ && to != rank_, "shoal: send to invalid rank ", to);
  TORCH_CHECK(tag >= 0, "Tag must be nonnegative");
  Call call(*this);
  const Piece bytes = call.read(tensors[0]);
  call.plan.peer = to;
  call.plan.inputs = tensors;
  call.plan.outputs = {tensors};
  const auto work = begin(call, c10d::OpType::SEND, "shoal:send", c10d::kUnsetTimeout,
                          "send to rank " + std::to_string(to) + " (tag " + std::to_string(tag) + ")", 0);
  const auto send = [group = group_, work, to, tag, bytes] {
    group->send(static_cast<net::Rank>(to), static_cast<std::uint32_t>(tag), bytes, work->patience(), part_of(work));
  };
  return leaves_now(call) ? start(work, send) : start_late(work, std::move(call.arriving), {send});
}

Backend::Result Backend::recv(Tensors& tensors, int from, int tag) {
  TORCH_CHECK(from >= 0 && from < size_ && from != rank_, "shoal: recv from invalid rank ", from);
  return receive(tensors, static_cast<net::Rank>(from), tag);
}

Backend::Result Backend::recvAnysource(Tensors& tensors, int tag) { return receive(tensors, std::nullopt, tag); }

Backend::Result Backend::receive(Tensors& tensors, std::optional<net::Rank> from, int tag) {
  check_single("recv", tensors);
  TORCH_CHECK(tag >= 0, "Tag must be nonnegative");
  Call call(*this);
  const Piece bytes = call.write(tensors[0]);
  call.plan.peer = from ? static_cast<int>(*from) : -1;
  call.plan.inputs = tensors;
  call.plan.outputs = {tensors};
  const std::string who = from ? "rank " + std::to_string(*from) : "any rank";
  const auto work = begin(call, from ? c10d::OpType::RECV : c10d::OpType::RECVANYSOURCE, from ? "shoal:recv" : "shoal:recvAnySource", c10d::kUnsetTimeout,
                          "recv from " + who + " (tag " + std::to_string(tag) + ")", 0);
  return start(work, [&] {
    group_->receive(from, static_cast<std::uint32_t>(tag), bytes, work->patience(),
                    [work](const net::Failure& failure, net::Rank source) mutable {
                      Work::part_done(std::move(work), failure, static_cast<int>(source));
                    });
  });
}

}  // namespace shoal::nn
