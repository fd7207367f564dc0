#include "shoal/nn/session.h"

#include <cstring>
#include <numeric>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/joint.h"
#include "shoal/net/call.h"
#include "shoal/net/narrowed.h"
#include "shoal/nn/group/said.h"

namespace shoal::nn {

using collective::Collective;

namespace {

// Texts are names, plans and settings: far below this; a size from another member is not believed beyond it.
constexpr std::uint64_t kTextLimit = 256u << 20;

// A server waits for workers that evaluate or save. Who is silent is lost before, and workers have deadlines of their own.
constexpr Nanoseconds kAsLongAsItTakes = std::chrono::hours(24) * 3650;

// The first members of a job as one of their own.
class WorkersJob final : public net::Job {
 public:
  static constexpr std::uint16_t kFirstChannel = 0x4000, kChannels = 0x4000;  // far above those of the whole job, which are counted from 1 on

  WorkersJob(std::shared_ptr<const void> lease, net::Job& whole, net::Rank workers)
      : lease_(std::move(lease)), place_(whole.place()), members_(whole.members().begin(), whole.members().begin() + workers),
        transport_(whole.transport(), first_ranks(workers), kFirstChannel, kChannels) {
    place_.size = workers;
  }
  const net::Place& place() const override { return place_; }
  const std::vector<net::MemberInfo>& members() const override { return members_; }
  net::Transport& transport() override { return transport_; }

 private:
  const std::shared_ptr<const void> lease_;  // of the whole job: gone last
  net::Place place_;
  const std::vector<net::MemberInfo> members_;
  net::Narrowed transport_;
};

}  // namespace

Session::Session(std::unique_ptr<net::Job> job, Nanoseconds patience, JoinAgain join_again)
    : place_(job->place()), size_(place_.size), workers_(net::workers_among(job->members())), join_again_(std::move(join_again)), links_before_(place_.size),
      patience_(serves() ? kAsLongAsItTakes : patience), channel_(new_channel()),
      survivors_channel_(new_channel()), feed_channel_(new_channel()), rates_(place_.size) {
  read_said(said_here());  // a mistake shows before anything is trained
  arriving_ = rejoins() && place_.generation > 0;
  enter(group_over(std::move(job)));
  if (rejoins() && transport().on_peer_lost() == net::OnPeerLost::regrow) {
    regrowth_ = std::make_unique<Regrowth>(join_again_, Regrowth::Channels{survivors_channel_, feed_channel_});
  }
}

Session::~Session() = default;

std::shared_ptr<SessionGroup> Session::group_over(std::unique_ptr<net::Job> job) const { return std::make_shared<SessionGroup>(std::move(job), survivors_channel_); }

void Session::enter(std::shared_ptr<SessionGroup> group) {
  runner_ = group->runners.empty() ? nullptr : group->runners.back().get();
  survivors_ = group->survivors.get();
  if (const net::Rank members = group->job->place().size; members != size_) {
    size_ = workers_ = members;  // none only serves
    rates_ = collective::LinkRates(members);
  }
  rates_.begin_again();  // its links' totals begin
  const std::lock_guard lock(group_guard_);
  group_ = std::move(group);
}

// Epochs of a group's losses stay far below 2^kGroupShift.
std::uint64_t Session::generation_at(std::uint64_t epoch) const {
  constexpr int kGroupShift = 8;
  return (group_->job->place().generation << kGroupShift) + epoch;
}

std::unique_ptr<Session> Session::of_workers() const {
  const auto whole = group();
  return std::make_unique<Session>(std::make_unique<WorkersJob>(whole, *whole->job, workers_), patience_);
}

std::shared_ptr<SessionGroup> Session::group() const {
  const std::lock_guard lock(group_guard_);
  return group_;
}

net::Failure Session::failure() const { return size() == 1 ? nullptr : group()->job->transport().failure(); }

bool Session::is_lost(net::Rank peer) const { return peer != rank() && group()->job->transport().lost(peer) != nullptr; }

net::LinkStats Session::link(net::Rank peer) const {
  net::LinkStats all = links_before_[peer];
  if (peer == rank()) return all;
  const net::LinkStats now = group_->job->transport().link(peer);
  all.sent += now.sent;
  all.saved += now.saved;
  all.lent += now.lent;
  all.received += now.received;
  all.wire_sent += now.wire_sent;
  all.wire_received += now.wire_received;
  all.shared_memory = now.shared_memory;
  return all;
}

bool Session::links_pack() const {
  for (net::Rank peer = 0; peer < size(); ++peer) {
    if (link(peer).saved > 0) return true;
  }
  return false;
}

void Session::together(const std::string& label, const std::function<void()>& part, With with) {
  if (!survivors_ || together_) return part();
  if (arriving_ && !taking_over_) {
    throw Error(Code::invalid_argument, "this member came in place of a lost one, and does not have the state of the others yet", label,
                "make the shoal.State, or open the first table, before anything that members do together");
  }
  const bool wants_all = rejoins() && with == With::all;
  if (wants_all && !carried_.write) {
    throw Error(Code::invalid_argument, "nothing says what those take over who come in place of lost members",
                std::string("--on-peer-lost ") + (net::name(transport().on_peer_lost())),
                "make a shoal.State of model and optimizer before the first step");
  }
  std::vector<std::string> all_ready;
  bool incomplete = false;
  const auto attempted = [&](const collective::Attempt& attempt) {
    if (attempt.runner->size() < living()) {
      runner_ = group_->runners.emplace_back(attempt.runner).get();
      generation_ = generation_at(attempt.epoch);
      look_for_others();
    }
    const bool some_are_lost = wants_all && living() < size();  // alike on all that are left
    incomplete = some_are_lost && !regrows();
    if (incomplete) return;  // nothing is done before the others have come
    operation_ = attempt.operation;
    const Inside inside(together_);
    part();
    // Asked as late as it can be: what each of them had not seen yet costs a whole step.
    if (some_are_lost) all_ready = gather_text(regrowth_->ready(members()), "who has met those who come");
  };
  do {
    try {
      collective::do_together(transport(), *survivors_, patience_of_now(), label, attempted);
    } catch (const Error&) {
      if (!wants_all || !has_more()) throw;
      incomplete = true;
    }
    if (incomplete) join_anew();
  } while (incomplete);
  if (!all_ready.empty()) regrowth_->heard(all_ready);
  look_for_others();
}

// Those who train do not hurry to one who comes; they may be in a long evaluation. Who is silent is lost before.
Nanoseconds Session::patience_of_now() const { return taking_over_ && regrows() ? kAsLongAsItTakes : patience_; }

std::uint64_t Session::take_operations(std::uint64_t count) {
  if (together_) return std::exchange(operation_, operation_ + count);
  return net::operation_in(channel_, std::exchange(next_operation_, next_operation_ + count));
}

collective::Started Session::start(const collective::Program& program, const collective::Layout& layout,
                                   collective::Buffers buffers, const std::string& label) {
  collective::Run run;
  run.type = DType::u8;
  run.operation = take_operations(1);
  run.label = label;
  return {*runner_, collective::verify(program), layout, buffers, run};
}

void Session::wait(collective::Started& started) {
  started.wait(transport().now() + patience_of_now(), "raise SHOAL_TIMEOUT if a member may be this slow");
}

void Session::Broadcast::wait() {
  if (auto started = std::exchange(started_, std::nullopt)) session_->wait(*started);
}

void Session::Broadcast::cancel() {
  auto started = std::exchange(started_, std::nullopt);
  if (!started) return;
  try {
    started->wait(session_->transport().now());
  } catch (const Error&) {  // that it was cut short, or what had ended it
  }
}

Session::Broadcast Session::start_broadcast(std::span<std::byte> bytes, net::Rank root, const std::string& label) {
  Broadcast broadcast;
  if (living() == 1 || bytes.empty()) return broadcast;
  const auto way = collective::choose(Collective::broadcast, living(), static_cast<double>(bytes.size()), {});
  const auto program = collective::build(Collective::broadcast, way, living(), root);
  broadcast.session_ = this;
  broadcast.started_ = start(program, collective::Layout::even(program, place(), bytes.size()), {bytes.data(), bytes.data()}, label);
  return broadcast;
}

void Session::broadcast(std::span<std::byte> bytes, net::Rank root, const std::string& label) {
  together(label, [&] { start_broadcast(bytes, root, label).wait(); });
}

std::string Session::broadcast_text(const std::string& text, net::Rank root, const std::string& label) {
  std::string all;
  together(label, [&] {
    std::uint64_t length = text.size();
    broadcast(std::as_writable_bytes(std::span(&length, 1)), root, label);
    if (length > kTextLimit) throw Error(Code::internal, "a text of " + std::to_string(length) + " bytes was announced", label);
    all = place() == root ? text : std::string(length, '\0');
    broadcast(std::as_writable_bytes(std::span(all)), root, label);
  });
  return all;
}

std::vector<std::string> Session::gather_text(const std::string& own, const std::string& label) {
  std::vector<std::string> texts;
  together(label, [&] { texts = gather_once(own, label); });
  return texts;
}

std::vector<std::string> Session::gather_once(const std::string& own, const std::string& label) {
  if (living() == 1) return {own};
  const auto members = living();
  const auto program = collective::build(Collective::all_gather, "direct", members);
  std::vector<std::uint64_t> lengths(members);
  const std::uint64_t length = own.size();
  auto sizes = start(program, collective::Layout::even(program, place(), sizeof length * members),
                     {reinterpret_cast<const std::byte*>(&length), reinterpret_cast<std::byte*>(lengths.data())}, label);
  wait(sizes);

  collective::Layout layout{lengths, std::vector<std::uint64_t>(members, 0), std::vector<std::uint64_t>(members, 0)};
  std::exclusive_scan(lengths.begin(), lengths.end(), layout.output.begin(), std::uint64_t{0});
  const auto total = layout.output.back() + lengths.back();
  if (total > kTextLimit) throw Error(Code::internal, "texts of " + std::to_string(total) + " bytes were announced", label);
  std::string all(total, '\0');
  auto whole = start(program, layout, {reinterpret_cast<const std::byte*>(own.data()), reinterpret_cast<std::byte*>(all.data())}, label);
  wait(whole);
  std::vector<std::string> texts;
  for (net::Rank p = 0; p < members; ++p) texts.push_back(all.substr(layout.output[p], lengths[p]));
  return texts;
}

}  // namespace shoal::nn
