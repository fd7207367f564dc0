// Members die, stop or leave: the others' waits end with one line that names who. Members and their
// coordinator are forked processes that report through pipes.
#include <sys/mman.h>

#include "forked.h"
#include "own_connections.h"
#include "tests/core/like_gradients.h"

namespace shoal::net {
namespace {

// Waits in a receive that will never be filled, and in a send that the receiver never asks for.
std::string wait_for_everyone(Job& job) {
  Transport& transport = job.transport();
  transport.doing("step 12 of rank " + std::to_string(transport.rank()));
  std::vector<std::byte> in(1 << 20), out(8 << 20);
  Countdown done(static_cast<int>(2 * (transport.size() - 1)));
  transport.post([&] {
    for (Rank peer = 0; peer < transport.size(); ++peer) {
      if (peer == transport.rank()) continue;
      transport.receive(peer, {1, 0}, {}, std::span(in), done.done());
      transport.send(peer, {2, 0}, {}, std::span(out), done.done());
    }
  });
  if (!done.wait(transport)) return "still waiting";
  for (const Failure& failure : done.failures()) {
    if (failure->what() != std::string(transport.failure()->what())) return "differing failures";
  }
  return std::string(name(transport.failure()->code())) + ": " + transport.failure()->what();
}

// Gives up once every other member is seen to be at work in wait_for_everyone().
std::string give_up(Job& job, const Error& why) {
  Transport& transport = job.transport();
  std::vector<std::byte> in(transport.size());
  Countdown begun(static_cast<int>(transport.size() - 1));
  transport.post([&] {
    for (Rank peer = 0; peer < transport.size(); ++peer) {
      if (peer != transport.rank()) transport.receive(peer, {2, 0}, {}, std::span(in).subspan(peer, 1), begun.done());
    }
  });
  if (!begun.wait(transport)) return "nobody works";
  transport.post([&] { transport.fail(why); });
  transport.drive([&] { return transport.failure() != nullptr; }, steady_now() + 10s);
  return "gave up";
}

TEST(Failure, a_killed_member_is_named_by_every_survivor_within_half_a_second) {
  Team team(4, quick(), wait_for_everyone);
  const Instant killed = steady_now();
  team.members[2]->signal(SIGKILL);
  const std::string host = [] { char name[256] = {}; gethostname(name, 255); return std::string(name); }();
  for (const Rank survivor : {0u, 1u, 3u}) {
    const std::string line = team.members[survivor]->line();
    EXPECT_EQ(line.rfind("peer_lost: rank 2 (" + host + ") was lost: connection closed", 0), 0u) << line;
  }
  EXPECT_LT(steady_now() - killed, 500ms);
}

// 8 MB from each to each, again and again, so that the kill falls into copying through the rings of shared memory.
std::string exchange_for_ever(Job& job, std::atomic<int>* rounds) {
  Transport& transport = job.transport();
  std::vector<std::byte> out(8 << 20, std::byte{1});
  std::vector<std::vector<std::byte>> in(transport.size(), std::vector<std::byte>(out.size()));
  for (std::uint64_t operation = 1; !transport.failure(); ++operation) {
    Countdown done(static_cast<int>(2 * (transport.size() - 1)));
    transport.post([&] {
      for (Rank peer = 0; peer < transport.size(); ++peer) {
        if (peer == transport.rank()) continue;
        transport.receive(peer, {operation, 0}, {}, std::span(in[peer]), done.done());
        transport.send(peer, {operation, 0}, {}, std::span(out), done.done());
      }
    });
    if (!done.wait(transport)) return "still waiting";
    if (done.failures().empty()) ++*rounds;
  }
  return std::string(name(transport.failure()->code())) + ": " + transport.failure()->what();
}

TEST(Failure, a_member_killed_amid_its_bytes_is_named_by_every_survivor) {
  auto* rounds = new (mmap(nullptr, sizeof(std::atomic<int>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) std::atomic<int>(0);
  Team team(3, quick(), [&](Job& job) {
    if (!job.transport().link((job.transport().rank() + 1) % 3).shared_memory) return std::string("not through shared memory");
    return exchange_for_ever(job, rounds);
  });
  while (*rounds < 6) std::this_thread::yield();
  team.members[1]->signal(SIGKILL);
  for (const Rank survivor : {0u, 2u}) {
    const std::string line = team.members[survivor]->line();
    EXPECT_EQ(line.rfind("peer_lost: rank 1 (", 0), 0u) << line;
    EXPECT_NE(line.find("was lost: connection closed"), std::string::npos) << line;
  }
  munmap(rounds, sizeof *rounds);
}

TEST(Failure, what_the_lost_member_did_last_is_in_the_line) {
  Team team(2, quick_health(), [](Job& job) {
    if (job.transport().rank() == 0) return wait_for_everyone(job);
    job.transport().doing("step 12, all-reduce of fc1.weight");
    // Dies after a few heartbeats.
    job.transport().drive([] { return false; }, steady_now() + 200ms);
    raise(SIGKILL);
    return std::string();
  });
  const std::string line = team.members[0]->line();
  EXPECT_TRUE(line.ends_with("; it last did: step 12, all-reduce of fc1.weight")) << line;
}

TEST(Failure, a_stopped_member_is_named_by_every_survivor) {
  Team team(3, quick_health(), wait_for_everyone);
  team.members[1]->signal(SIGSTOP);
  for (const Rank survivor : {0u, 2u}) {
    const std::string line = team.members[survivor]->line();
    EXPECT_NE(line.find("peer_lost: rank 1 ("), std::string::npos) << line;
    EXPECT_NE(line.find("was lost: not heard for 500 ms"), std::string::npos) << line;
  }
  team.members[1]->signal(SIGCONT);
  const std::string line = team.members[1]->line();
  EXPECT_NE(line.find("this member (rank 1"), std::string::npos) << line;
}

TEST(Failure, with_two_members_the_stopped_one_cannot_be_heard) {
  Team team(2, quick_health(), wait_for_everyone);
  team.members[1]->signal(SIGSTOP);
  const std::string line = team.members[0]->line();
  EXPECT_NE(line.find("was lost: not heard for 500 ms"), std::string::npos) << line;
}

// The other two stop: to the third it looks as if its own cable were pulled.
TEST(Failure, a_member_that_hears_nobody_says_that_it_is_cut_off) {
  Team team(3, quick_health(), wait_for_everyone);
  team.members[0]->signal(SIGSTOP);
  team.members[1]->signal(SIGSTOP);
  const std::string line = team.members[2]->line();
  EXPECT_NE(line.find("is cut off: it hears no other member"), std::string::npos) << line;
}

TEST(Failure, a_member_that_gives_up_tells_why) {
  Team team(3, quick(), [](Job& job) {
    if (job.transport().rank() != 1) return wait_for_everyone(job);
    return give_up(job, Error(Code::io, "the disk is full", "/data"));
  });
  for (const Rank survivor : {0u, 2u}) {
    const std::string line = team.members[survivor]->line();
    EXPECT_NE(line.find("gave up: /data: the disk is full"), std::string::npos) << line;
    EXPECT_EQ(line.rfind("peer_lost: rank 1 (", 0), 0u) << line;
  }
}

TEST(Failure, a_mismatch_stays_a_mismatch_for_everyone) {
  Team team(2, quick(), [](Job& job) {
    if (job.transport().rank() == 1) return wait_for_everyone(job);
    return give_up(job, Error(Code::mismatch, "shapes differ"));
  });
  const std::string line = team.members[1]->line();
  EXPECT_EQ(line.rfind("mismatch: rank 0 (", 0), 0u) << line;
}

// A goodbye is no loss: what was sent arrives, the others go on, and only who still wants something of the one
// that left hears that it has gone.
TEST(Failure, a_goodbye_is_not_a_loss) {
  auto jobs = join_all(3);
  std::vector<std::byte> parting(3 << 20, std::byte{7}), got(3 << 20);
  Countdown sent(1), arrived(1), late(1), others(2);
  Transport& leaver = jobs[2]->transport();
  jobs[0]->transport().post([&] { jobs[0]->transport().receive(2, {1, 0}, {}, std::span(got), arrived.done()); });
  leaver.post([&] { leaver.send(0, {1, 0}, {}, std::span(parting), sent.done()); });
  leaver.doing("step 18, exchanging gradients");
  jobs[2].reset();
  ASSERT_TRUE(arrived.wait(jobs[0]->transport()));
  EXPECT_TRUE(arrived.failures().empty());
  EXPECT_TRUE(got == parting);

  std::byte more{};
  jobs[0]->transport().post([&] { jobs[0]->transport().receive(2, {2, 0}, {}, std::span(&more, 1), late.done()); });
  ASSERT_TRUE(late.wait(jobs[0]->transport()));
  ASSERT_EQ(late.failures().size(), 1u);
  EXPECT_EQ(late.failures()[0]->code(), Code::peer_lost);
  EXPECT_NE(std::string(late.failures()[0]->what()).find("left the job; it last did: step 18, exchanging gradients"), std::string::npos);

  std::byte mine{9}, theirs{};
  jobs[0]->transport().post([&] {
    jobs[0]->transport().send(1, {3, 0}, {}, std::span(&mine, 1), others.done());
    jobs[1]->transport().receive(0, {3, 0}, {}, std::span(&theirs, 1), others.done());
  });
  ASSERT_TRUE(others.wait(jobs[1]->transport()));
  EXPECT_TRUE(others.failures().empty());
  EXPECT_EQ(theirs, mine);
  EXPECT_EQ(jobs[1]->transport().failure(), nullptr);
  leave_all(jobs);
}

// Two members between whom large packets vanish, as where several senders fill a slow link's queue: 4 MB from one to the other, which get through once the path
// is healed. What became of the receive, "" where they arrived.
std::string through_a_path_that_swallows(Nanoseconds for_how_long, Nanoseconds stalled) {
  JoinOptions options = quick_health();
  options.stalled = stalled;
  options.shared_memory = false;
  std::vector<std::byte> out(4 << 20, std::byte{5}), in(4 << 20);
  Countdown arrived(1), sent(1);
  auto jobs = join_all(2, options);
  const auto connections = own_connections();
  std::for_each(connections.begin(), connections.end(), swallow_large);
  Transport& to = jobs[1]->transport();
  to.post([&] {
    jobs[0]->transport().send(1, {1, 0}, {}, std::span(out), sent.done());
    to.receive(0, {1, 0}, {}, std::span(in), arrived.done());
  });
  to.drive([&] { return to.failure() != nullptr; }, steady_now() + for_how_long);
  if (!to.failure()) {
    EXPECT_FALSE(arrived.wait(to, 0s)) << "nothing was swallowed";
    std::for_each(connections.begin(), connections.end(), heal);
  }
  if (!arrived.wait(to)) return "still waiting";
  if (!arrived.failures().empty()) return arrived.failures()[0]->what();
  EXPECT_TRUE(in == out);
  leave_all(jobs);
  return "";
}

TEST(Failure, bytes_that_vanish_for_longer_than_a_silent_member_lives_are_sent_again) {
  EXPECT_EQ(through_a_path_that_swallows(3 * quick_health().dead, 60s), "");
}

TEST(Failure, a_member_that_is_heard_and_acknowledges_nothing_is_lost_in_the_end) {
  const std::string why = through_a_path_that_swallows(20s, 300ms);
  EXPECT_NE(why.find("it is heard, and one of its connections has acknowledged nothing for 300 ms"), std::string::npos) << why;
}

TEST(Failure, closing_an_operation_ends_its_waits_and_no_others) {
  auto jobs = join_all(2);
  std::vector<std::byte> out(4 << 20, std::byte{3}), in(4 << 20);
  Countdown closed(2), kept(2);
  const auto why = std::make_shared<const Error>(Code::timeout, "too late");
  Transport& a = jobs[0]->transport();
  Transport& b = jobs[1]->transport();
  a.post([&] {
    a.send(1, {1, 0}, {}, std::span(out), closed.done());
    a.receive(1, {1, 1}, {}, std::span(in), closed.done());
    a.close(1, why);
    a.send(1, {2, 0}, {}, std::span(out), kept.done());
    b.receive(0, {2, 0}, {}, std::span(in), kept.done());
  });
  ASSERT_TRUE(closed.wait(a));
  ASSERT_EQ(closed.failures().size(), 2u);
  EXPECT_EQ(closed.failures()[0], why);
  ASSERT_TRUE(kept.wait(a));
  EXPECT_TRUE(kept.failures().empty());
  EXPECT_TRUE(in == out);
  leave_all(jobs);
}

// Links that pack, frames that lie packed with the sender and half read at the receiver: who closes takes its memory back, and what comes after it comes as it was sent.
TEST(Failure, closing_an_operation_whose_frames_are_packed_spoils_no_others) {
  JoinOptions options = quick();
  options.packing = Packing::always;
  options.shared_memory = false;
  constexpr std::size_t kFloats = 2 << 20, kFirst = 100'000;
  const auto values = like_gradients(kFloats, 0.25);
  const auto why = std::make_shared<const Error>(Code::timeout, "too late");
  for (const Rank closes : {Rank{0}, Rank{1}}) {
    SCOPED_TRACE("closed by rank " + std::to_string(closes));
    auto jobs = join_all(2, options);
    Transport& a = jobs[0]->transport();
    Transport& b = jobs[1]->transport();
    auto out = values;
    std::vector<float> in(kFloats), after(kFloats);
    Countdown first(1), ended(2), kept(2);
    a.post([&] { a.send(1, {1, 0}, {}, std::as_bytes(std::span(out)), ended.done()); });
    b.post([&] {
      b.receive(0, {1, 0}, {}, std::as_writable_bytes(std::span(in)).first(kFirst), [&](const Failure& failure) {
        Transport& one = closes == 0 ? a : b;
        one.post([&] {
          one.close(1, why);
          auto& own = closes == 0 ? out : in;
          std::fill(own.begin(), own.end(), 7.0F);
        });
        first.done()(failure);
      });
      b.receive(0, {1, 0}, {}, std::as_writable_bytes(std::span(in)).subspan(kFirst), ended.done());
    });
    ASSERT_TRUE(first.wait(b));
    a.post([&] { a.send(1, {2, 0}, {}, std::as_bytes(std::span(values)), kept.done()); });
    b.post([&] { b.receive(0, {2, 0}, {}, std::as_writable_bytes(std::span(after)), kept.done()); });
    ASSERT_TRUE(kept.wait(b));
    EXPECT_TRUE(after == values);
    EXPECT_GT(a.link(1).saved, 0U);
    a.post([&] { a.close(1, why); });
    b.post([&] { b.close(1, why); });
    ASSERT_TRUE(ended.wait(b));
    EXPECT_EQ(static_cast<std::size_t>(std::count(in.begin(), in.end(), 7.0F)), closes == 0 ? 0 : kFloats);
    leave_all(jobs);
  }
}

}  // namespace
}  // namespace shoal::net
