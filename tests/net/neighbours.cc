// Members of one host exchange through memory that both map, all else as over TCP; who cannot, or does not want to, uses TCP.
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

#include "members.h"
#include "shoal/net/segment.h"

namespace shoal::net {
namespace {

using namespace std::chrono_literals;

// Segments that this process has mapped.
int mapped_segments() {
  std::ifstream maps("/proc/self/maps");
  int count = 0;
  for (std::string line; std::getline(maps, line);) count += line.find("memfd:shoal segment") != std::string::npos;
  return count;
}

bool shared(Job& job, Rank peer) { return job.transport().link(peer).shared_memory; }

// What both ends of a pair got of 1 MB that went each way.
void swap_bytes(std::vector<std::unique_ptr<Job>>& jobs, Rank a, Rank b) {
  std::vector<std::byte> out(1 << 20, std::byte{5}), in_a(1 << 20), in_b(1 << 20);
  Countdown done(4);
  jobs[a]->transport().post([&] {
    jobs[a]->transport().send(b, {9, 0}, {}, std::span(out), done.done());
    jobs[a]->transport().receive(b, {9, 0}, {}, std::span(in_a), done.done());
  });
  jobs[b]->transport().post([&] {
    jobs[b]->transport().send(a, {9, 0}, {}, std::span(out), done.done());
    jobs[b]->transport().receive(a, {9, 0}, {}, std::span(in_b), done.done());
  });
  ASSERT_TRUE(done.wait(jobs[a]->transport()));
  EXPECT_TRUE(done.failures().empty());
  EXPECT_TRUE(in_a == out && in_b == out);
}

TEST(Neighbours, share_memory_and_leave_none_behind) {
  auto jobs = join_all(3);
  EXPECT_EQ(mapped_segments(), 3 * 2 * 2);  // a segment a pair and direction, mapped by both of its ends
  const std::uint64_t wire = jobs[0]->transport().link(1).wire_sent;
  swap_bytes(jobs, 0, 1);
  for (Rank rank = 0; rank < 3; ++rank) EXPECT_TRUE(shared(*jobs[rank], (rank + 1) % 3));
  EXPECT_EQ(jobs[0]->transport().link(1).sent, 1u << 20);
  EXPECT_EQ(jobs[0]->transport().link(1).received, 1u << 20);
  EXPECT_LT(jobs[0]->transport().link(1).wire_sent - wire, 1u << 16);  // heartbeats
  EXPECT_EQ(jobs[0]->transport().link(1).in.bytes, 0u);                // no link that could have a rate
  leave_all(jobs);
  auto last = join_all(1);  // its loop has run everything that the others left to do
  EXPECT_TRUE(last[0]->transport().drive([] { return mapped_segments() == 0; }, steady_now() + 10s));
}

TEST(Neighbours, one_that_does_not_want_to_is_reached_by_tcp) {
  Board board;
  std::vector<std::unique_ptr<Job>> jobs(3);
  each(3, [&](Rank rank) {
    JoinOptions options = quick();
    options.shared_memory = rank != 1;
    jobs[rank] = join_tcp(place_of(rank, 3), board, "t/", "s", options);
  });
  swap_bytes(jobs, 0, 1);
  swap_bytes(jobs, 0, 2);
  EXPECT_TRUE(shared(*jobs[0], 2));
  EXPECT_TRUE(shared(*jobs[2], 0));
  for (const Rank other : {0u, 2u}) {
    EXPECT_FALSE(shared(*jobs[1], other));
    EXPECT_FALSE(shared(*jobs[other], 1));
    EXPECT_GT(jobs[1]->transport().link(0).wire_sent, 1u << 20);
  }
  // Trains: no more than was sent, and no time without bytes. How much of it waited for this machine's loopback is the kernel's affair.
  for (const Trains& trains : {jobs[0]->transport().link(1).out, jobs[1]->transport().link(0).in}) {
    EXPECT_LT(trains.bytes, 1u << 20);
    EXPECT_GE(trains.beside, trains.bytes);
    EXPECT_EQ(trains.seconds > 0, trains.bytes > 0);
  }
  leave_all(jobs);
}

// Goal: an urgent message is not behind the bulk bytes that wait for credit, for room or for their turn. 64 MB are under way
// and not yet asked for when it leaves.
TEST(Neighbours, an_urgent_message_overtakes_bulk_bytes) {
  auto jobs = join_all(2);
  Transport& a = jobs[0]->transport();
  Transport& b = jobs[1]->transport();
  std::vector<std::byte> bulk(64 << 20, std::byte{1}), into(64 << 20);
  std::uint64_t urgent = 7, got = 0;
  bool bulk_was_there = false;
  Countdown arrived(1), all(3);
  a.post([&] {
    a.send(1, {1, 0}, {}, std::span(bulk), all.done());
    b.receive(0, {1, 0}, {}, std::span(into), [&](const Failure& failure) {
      bulk_was_there = true;
      all.done()(failure);
    });
    b.receive(0, {2, 0}, {Class::urgent, 0, 0}, std::as_writable_bytes(std::span(&got, 1)), [&](const Failure& failure) {
      EXPECT_FALSE(bulk_was_there);
      arrived.done()(failure);
    });
    a.post([&] { a.send(1, {2, 0}, {Class::urgent, 0, 0}, std::as_bytes(std::span(&urgent, 1)), all.done()); });
  });
  ASSERT_TRUE(arrived.wait(b));
  EXPECT_EQ(got, urgent);
  ASSERT_TRUE(all.wait(a));
  EXPECT_TRUE(into == bulk);
  leave_all(jobs);
}

// A sender that closes an operation takes its memory back at once: what is under way is from a copy, what is not never comes.
TEST(Neighbours, closed_while_under_way_delivers_no_other_bytes) {
  auto jobs = join_all(2);
  Transport& a = jobs[0]->transport();
  Transport& b = jobs[1]->transport();
  constexpr std::size_t kBytes = 8 << 20, kFirst = 100'000;
  std::vector<std::byte> out(kBytes, std::byte{3}), in(kBytes, std::byte{3});
  const auto why = std::make_shared<const Error>(Code::timeout, "too late");
  Countdown sent(1), first(1), received(1), after(2);
  a.post([&] {
    a.send(1, {1, 0}, {}, std::span(out), sent.done());
    b.receive(0, {1, 0}, {}, std::span(in).first(kFirst), [&](const Failure& failure) {
      a.close(1, why);  // a frame is half written, as the ring is smaller than what is left
      first.done()(failure);
    });
    b.receive(0, {1, 0}, {}, std::span(in).subspan(kFirst), received.done());
  });
  ASSERT_TRUE(sent.wait(a));
  ASSERT_EQ(sent.failures().size(), 1u);
  ASSERT_TRUE(first.wait(a));
  EXPECT_TRUE(first.failures().empty());
  std::fill(out.begin(), out.end(), std::byte{4});
  std::byte word{9}, came{};
  a.post([&] {
    a.send(1, {2, 0}, {}, std::span(&word, 1), after.done());
    b.receive(0, {2, 0}, {}, std::span(&came, 1), after.done());
  });
  ASSERT_TRUE(after.wait(b));
  EXPECT_EQ(came, word);
  b.post([&] { b.close(1, why); });
  ASSERT_TRUE(received.wait(b));
  ASSERT_EQ(received.failures().size(), 1u);
  EXPECT_EQ(std::count(in.begin(), in.end(), std::byte{4}), 0);
  leave_all(jobs);
}

TEST(Neighbours, a_forked_child_has_neither_memory_nor_descriptors_of_it) {
  auto jobs = join_all(2);
  ASSERT_GT(mapped_segments(), 0);
  const pid_t child = fork();
  if (child == 0) _exit(mapped_segments());
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  swap_bytes(jobs, 0, 1);
  leave_all(jobs);
}

// Lets this process make no more memory that could be shared, as a container's filter might.
void refuse_memfd() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_memfd_create, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(filter), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(2);
}

// The members are threads of a forked process, whose error output is read here.
TEST(Neighbours, without_the_right_to_make_memory_tcp_is_used_and_said_once) {
  int output[2];
  ASSERT_EQ(pipe(output), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(output[1], STDERR_FILENO);
    refuse_memfd();
    auto jobs = join_all(3);
    swap_bytes(jobs, 0, 1);
    swap_bytes(jobs, 1, 2);
    const bool none = !shared(*jobs[0], 1) && !shared(*jobs[1], 0) && !shared(*jobs[1], 2);
    leave_all(jobs);
    _exit(none && !testing::Test::HasFailure() ? 0 : 1);
  }
  close(output[1]);
  std::string said;
  for (char c; read(output[0], &c, 1) == 1;) said += c;
  close(output[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this system has no filters";
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(said.rfind("shoal: no shared memory with rank ", 0), 0u) << said;
  EXPECT_NE(said.find("TCP in its place: this system gives no memory for it (Operation not permitted); a container must allow"),
            std::string::npos) << said;
}

// --- how a segment is passed

TEST(Mailbox, gives_what_was_passed_under_the_number_and_nothing_else) {
  const Mailbox mailbox;
  ASSERT_FALSE(mailbox.name().empty());
  OwnSegment own, strange;
  ASSERT_TRUE(own);
  Descriptor bell(open("/dev/null", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(strange.pass(mailbox.name(), bell.get()), "");
  EXPECT_EQ(own.pass(mailbox.name(), bell.get()), "");
  OtherSegment got;
  EXPECT_EQ(mailbox.take(own.number(), got), "");
  (*own).ring[7] = std::byte{42};
  EXPECT_EQ(got.shared->ring[7], std::byte{42});
  OtherSegment none;
  EXPECT_NE(mailbox.take(strange.number(), none), "");  // thrown away with what was in the way
  EXPECT_FALSE(none.shared);
}

TEST(Mailbox, refuses_memory_that_its_maker_could_cut_short) {
  const Descriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC));
  ASSERT_EQ(ftruncate(unsealed.get(), sizeof(Shared)), 0);
  EXPECT_FALSE(Mapping(unsealed.get()));
  EXPECT_FALSE(Mapping(open("/dev/null", O_RDWR | O_CLOEXEC)));
  const std::unique_ptr<FILE, int (*)(FILE*)> file(tmpfile(), fclose);  // on a disk, where there are no seals
  ASSERT_EQ(ftruncate(fileno(file.get()), sizeof(Shared)), 0);
  EXPECT_FALSE(Mapping(fileno(file.get())));
}

// A network namespace of its own has names of its own: nobody there finds the mailbox. Needs root.
TEST(Mailbox, is_not_reached_from_another_network_namespace) {
  const Mailbox mailbox;
  const pid_t child = fork();
  if (child == 0) {
    if (unshare(CLONE_NEWNET) != 0) _exit(2);
    OwnSegment own;
    _exit(own.pass(mailbox.name(), 1).empty() ? 1 : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "needs the right to make a network namespace";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// There is no name under which a process could open a segment: none in a file system, and the descriptor itself is gone from its
// maker's table once it was passed.
TEST(Mailbox, a_passed_segment_has_no_name_and_no_descriptor) {
  const auto names = [] {
    std::set<std::string> all;
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) all.insert(entry.path());
    return all;
  };
  const auto descriptors = [] {
    int count = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      count += std::filesystem::read_symlink(entry.path(), gone).string().find("memfd:shoal segment") != std::string::npos;
    }
    return count;
  };
  const auto before = names();
  auto jobs = join_all(2);
  EXPECT_TRUE(shared(*jobs[0], 1));
  EXPECT_EQ(names(), before);
  EXPECT_EQ(descriptors(), 0);
  leave_all(jobs);
}

}  // namespace
}  // namespace shoal::net
