// The same runner over real sockets: four members in one process, every program that the exchange may choose.
#include <gtest/gtest.h>

#include <thread>

#include "shoal/collective/build.h"
#include "shoal/collective/probe.h"
#include "shoal/collective/run.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/tcp.h"

namespace shoal::collective {
namespace {

using namespace std::chrono_literals;

constexpr net::Rank kRunners = 4;
const char* kSecret = "for this test alone";

// fn(member's job), each on a thread of its own; the first Error's line, or "".
template <class Fn>
std::string on_every_member(Fn fn) {
  net::Coordinator coordinator(kSecret, "127.0.0.1:0");
  std::vector<std::string> errors(kRunners);
  std::vector<std::thread> threads;
  for (net::Rank rank = 0; rank < kRunners; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        net::Place place;
        place.launcher = net::Place::Launcher::shoal;
        place.rank = rank;
        place.size = kRunners;
        place.job = "run_tcp";
        place.coordinator = coordinator.address();
        net::CoordinatorClient rendezvous(kSecret, coordinator.address());
        const auto job = net::join_tcp(place, rendezvous, "run_tcp", kSecret, {});
        fn(*job);
      } catch (const Error& error) {
        errors[rank] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& error : errors) {
    if (!error.empty()) return error;
  }
  return "";
}

TEST(RunTcp, every_all_reduce_gives_the_sum_at_every_size) {
  EXPECT_EQ(on_every_member([](net::Job& job) {
              net::Transport& transport = job.transport();
              Runner runner(transport, {0, 1, 2, 3});
              std::uint64_t operation = 1;
              for (const std::string& name : builder_names(Collective::all_reduce)) {
                const Verified plan = verify(build(Collective::all_reduce, name, kRunners));
                for (std::uint64_t count : {0u, 1u, 3u, 1000u, 100'003u, 700'000u}) {
                  std::vector<std::int32_t> input(count), output(count);
                  for (std::uint64_t i = 0; i < count; ++i) input[i] = static_cast<std::int32_t>(i * (runner.rank() + 1));
                  collective::Run run;
                  run.type = DType::i32;
                  run.operation = operation++;
                  run.slice_bytes = 64 * 1024;
                  if (count <= 1000) run.priority.cls = net::Class::urgent;
                  runner.run(plan, Layout::even(plan.program(), runner.rank(), count),
                             {reinterpret_cast<const std::byte*>(input.data()), reinterpret_cast<std::byte*>(output.data())},
                             run, transport.now() + 30s);
                  for (std::uint64_t i = 0; i < count; ++i)
                    ASSERT_EQ(output[i], static_cast<std::int32_t>(i * 10)) << name << " " << i;
                }
              }
            }),
            "");
}

TEST(RunTcp, the_probe_gives_all_members_the_same_figures) {
  std::vector<LinkModel> links(kRunners);
  EXPECT_EQ(on_every_member(
                [&](net::Job& job) { links[job.transport().rank()] = probe(job.transport(), 1, job.transport().now() + 50s); }),
            "");
  for (const LinkModel& link : links) {
    EXPECT_GT(link.alpha, 0);
    EXPECT_GT(link.rate, 0);
    EXPECT_EQ(link.alpha, links[0].alpha);
    EXPECT_EQ(link.rate, links[0].rate);
  }
}

TEST(RunTcp, a_deadline_says_for_whom_it_waited) {
  const std::string error = on_every_member([](net::Job& job) {
    net::Transport& transport = job.transport();
    const Verified plan = verify(build(Collective::all_reduce, "gather", kRunners));
    Runner runner(transport, {0, 1, 2, 3});
    std::vector<float> input(100), output(100);
    collective::Run run;
    run.operation = 1;
    run.label = "all-reduce of fc1.weight";
    if (runner.rank() != 3) {
      EXPECT_THROW(
          try {
            runner.run(plan, Layout::even(plan.program(), runner.rank(), 100),
                       {reinterpret_cast<const std::byte*>(input.data()), reinterpret_cast<std::byte*>(output.data())}, run,
                       transport.now() + 300ms);
          } catch (const Error& failure) {
            EXPECT_EQ(failure.code(), Code::timeout);
            EXPECT_NE(std::string(failure.what()).find("from rank 3"), std::string::npos) << failure.what();
            throw;
          },
          Error);
    }
    // Nobody leaves before all have waited: the late member's own all-reduce under another number.
    run.operation = 2;
    runner.run(plan, Layout::even(plan.program(), runner.rank(), 100),
               {reinterpret_cast<const std::byte*>(input.data()), reinterpret_cast<std::byte*>(output.data())}, run,
               transport.now() + 30s);
  });
  EXPECT_EQ(error, "");
}

}  // namespace
}  // namespace shoal::collective
