#include "shoal/collective/surviving_group.h"

#include <cstring>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/started.h"
#include "shoal/net/call.h"

namespace shoal::collective {
namespace {

constexpr std::uint64_t kUrgentBytes = net::kUrgentLimit;    // sums that need no credit

}  // namespace

// Built and proved once for each number of members that are left.
struct SurvivingGroup::Programs {
  explicit Programs(Options of_options) : options(std::move(of_options)) {}

  std::string builder(std::uint32_t ranks, std::uint64_t bytes) const {
    return options.builder.empty() ? choose(Collective::all_reduce, ranks, static_cast<double>(bytes), options.link) : options.builder;
  }
  const Verified& named(const std::string& name, std::uint32_t ranks) {
    const auto known = programs.find({name, ranks});
    if (known != programs.end()) return known->second;
    return programs.emplace(std::pair(name, ranks), verify(build(Collective::all_reduce, name, ranks))).first->second;
  }

  const Options options;
  std::map<std::pair<std::string, std::uint32_t>, Verified> programs;
};

class SurvivingGroup::Sum final : public Work {
 public:
  Sum(std::shared_ptr<Programs> programs, const Addition& addition, Summed done)
      : programs_(std::move(programs)), addition_(addition), bytes_(addition.count * size_of(addition.type)), done_(std::move(done)) {
    if (addition.buffers.input == addition.buffers.output) aside_.resize(bytes_);
  }

  void begin(const Attempt& attempt, net::Done held) override {
    attempt_ = attempt;
    const std::uint32_t ranks = attempt.runner->size();
    const std::string name = programs_->builder(ranks, bytes_);
    const Verified& program = programs_->named(name, ranks);
    Run run;
    run.type = addition_.type;
    run.op = addition_.op;
    run.slice_bytes = slice_bytes(Collective::all_reduce, name, ranks, static_cast<double>(bytes_), programs_->options.link);
    run.priority = addition_.priority;
    if (bytes_ <= kUrgentBytes) run.priority.cls = net::Class::urgent;
    run.operation = attempt.operation;
    run.label = addition_.label;
    std::byte* const output = aside_.empty() ? addition_.buffers.output : aside_.data();
    attempt.runner->start(program, Layout::even(program.program(), attempt.runner->rank(), addition_.count), {addition_.buffers.input, output}, run,
                          std::move(held));
  }

  void stop(const net::Failure& why) override {
    attempt_.runner->cancel(attempt_.operation, why);
    attempt_.runner.reset();  // what is left of it is in the transport's hands
  }

  void committed(const std::vector<Contributor>& contributors) override {
    if (!aside_.empty()) std::memcpy(addition_.buffers.output, aside_.data(), bytes_);
    std::exchange(done_, nullptr)(nullptr, contributors);
  }

  void failed(const net::Failure& why) override { std::exchange(done_, nullptr)(why, {}); }

 private:
  const std::shared_ptr<Programs> programs_;
  const Addition addition_;
  const std::uint64_t bytes_;
  Summed done_;
  Attempt attempt_;
  std::vector<std::byte> aside_;  // the sum, where the output is the input: that stays until all have it
};

SurvivingGroup::SurvivingGroup(net::Transport& transport, std::vector<net::Rank> members, std::uint16_t channel, Options options)
    : transport_(transport), programs_(std::make_shared<Programs>(std::move(options))), survivors_(transport, std::move(members), channel) {}

void SurvivingGroup::all_reduce(const Addition& addition, Summed done) {
  survivors_.start(std::make_shared<Sum>(programs_, addition, std::move(done)), 1, addition.weight, addition.patience, addition.label);
}

// Bounded: the patience by all members together, beyond it by how long the transport takes to say that a silent one is lost.
std::vector<Contributor> SurvivingGroup::sum(const Addition& addition) {
  struct Outcome {
    net::Failure why;
    std::vector<Contributor> contributors;
  };
  const auto outcome = net::ask<Outcome>(transport_, addition.patience + kAgrees, [this, addition](const auto& tell) {
    all_reduce(addition, [tell](const net::Failure& why, const std::vector<Contributor>& contributors) { tell({why, contributors}); });
  });
  // The loop still holds the caller's memory: no way on is safe.
  if (!outcome) end_process(addition.label);
  if (outcome->why) throw Error(*outcome->why);
  return outcome->contributors;
}

}  // namespace shoal::collective
