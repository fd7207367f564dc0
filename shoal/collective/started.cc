#include "shoal/collective/started.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "shoal/net/call.h"

namespace shoal::collective {
namespace {

// For the kernel to let go of memory after a deadline; a transport gives up a peer that takes nothing long before.
constexpr Nanoseconds kLetsGo = std::chrono::seconds(60);

}  // namespace

void end_process(const std::string& label) {
  const Error error(Code::internal, "the network's loop does not run any more", label);
  std::fprintf(stderr, "shoal: %s\n", error.what());
  std::_Exit(exit_code(error.code()));
}

struct Started::Outcome {
  std::atomic<bool> known = false;
  net::Failure why;  // before `known`
};

Started::Started(Runner& runner, const Verified& program, const Layout& layout, Buffers buffers, const Run& run)
    : runner_(&runner), operation_(run.operation), label_(run.label), outcome_(std::make_shared<Outcome>()) {
  const auto end = [outcome = outcome_](const net::Failure& why) {
    outcome->why = why;
    outcome->known.store(true, std::memory_order_release);
  };
  runner.transport().post([&runner, program, layout, buffers, run, end] {
    try {
      runner.start(program, layout, buffers, run, end);
    } catch (const Error& error) {
      end(std::make_shared<const Error>(error));
    }
  });
}

void Started::wait(Instant deadline, const std::string& hint) {
  net::Transport& transport = runner_->transport();
  const auto known = [this] { return outcome_->known.load(std::memory_order_acquire); };
  if (!transport.drive(known, deadline)) {
    transport.post([runner = runner_, operation = operation_, label = label_, hint] {
      const std::string whom = fmt::format("{}", fmt::join(runner->waiting(), "; "));
      runner->cancel(operation, std::make_shared<const Error>(Code::timeout, "the deadline has passed, waiting for " + whom, label, hint));
    });
    if (!net::wait_for(transport, known, kLetsGo)) end_process(label_);
  }
  if (outcome_->why) throw Error(*outcome_->why);
}

}  // namespace shoal::collective
