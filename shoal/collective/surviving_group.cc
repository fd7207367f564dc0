#include "shoal/collective/surviving_group.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/started.h"
#include "shoal/net/call.h"

namespace shoal::collective {
namespace {

constexpr std::uint64_t kUrgentBytes = net::kUrgentLimit;    // sums that need no credit
constexpr std::size_t kMostTrees = 32;                       // members for whom they are made on the loop, which must not be silent for long
constexpr std::uint64_t kMostWords = 64u << 20;              // of a network: a length from another member is not believed beyond it
enum Step : std::uint32_t { kLength, kWords, kSum, kSteps }; // operations of an attempt, in their order

}  // namespace

// What those that are left run: built and proved once for each number of them.
struct SurvivingGroup::Programs {
  Programs(std::vector<net::Rank> of_members, Options of_options)
      : members(std::move(of_members)), options(std::move(of_options)), link(options.link), agreed(static_cast<std::uint32_t>(members.size())) {
    if (!knows_network()) link.network = nullptr;
  }

  std::uint32_t all() const { return static_cast<std::uint32_t>(members.size()); }
  bool knows_network() const { return options.link.network != nullptr && options.link.network->ranks() == all(); }
  // Whether the first of so many is to tell the others of their network. The same on all of them: told is what a committed sum was added by.
  bool to_be_told(std::uint32_t ranks) const { return knows_network() && ranks > 1 && ranks < agreed; }

  std::string words_for(const std::vector<net::Rank>& left) const {
    if (left.size() > kMostTrees) return "";
    std::vector<std::uint32_t> places;
    for (std::uint32_t place = 0; place < members.size(); ++place) {
      if (std::ranges::find(left, members[place]) != left.end()) places.push_back(place);
    }
    return options.link.network->words_around(places);
  }
  void hear(const std::string& words) {
    link.network = KnownNetwork::heard(words);
    programs.clear();
  }

  std::string builder(std::uint32_t ranks, std::uint64_t bytes) const {
    const bool gone = is_of_network(options.builder) && ranks < all() &&
                      !(link.network && link.network->ranks() == ranks && link.network->made(Collective::all_reduce, options.builder));
    return options.builder.empty() || gone ? choose(Collective::all_reduce, ranks, static_cast<double>(bytes), link) : options.builder;
  }
  const Verified& named(const std::string& name, std::uint32_t ranks) {
    const auto known = programs.find({name, ranks});
    if (known != programs.end()) return known->second;
    return programs.emplace(std::pair(name, ranks), program_named(Collective::all_reduce, name, ranks, 0, link.network.get())).first->second;
  }

  const std::vector<net::Rank> members;
  const Options options;
  LinkModel link;         // with the network of those that are left
  std::uint32_t agreed;   // how many were left when a sum was last committed
  std::map<std::pair<std::string, std::uint32_t>, Verified> programs;
};

class SurvivingGroup::Sum final : public Work, public std::enable_shared_from_this<Sum> {
 public:
  Sum(std::shared_ptr<Programs> programs, const Addition& addition, Summed done)
      : programs_(std::move(programs)), addition_(addition), bytes_(addition.count * size_of(addition.type)), done_(std::move(done)) {
    if (addition.buffers.input == addition.buffers.output) aside_.resize(bytes_);
  }

  void begin(const Attempt& attempt, net::Done held) override {
    attempt_ = attempt;
    guarded(held, [&] {
      if (!programs_->to_be_told(attempt.runner->size())) return add(held);
      words_ = attempt.runner->rank() == 0 ? programs_->words_for(attempt.runner->members()) : "";
      length_ = words_.size();
      tell(kLength, std::as_writable_bytes(std::span(&length_, 1)), held, [this](const net::Done& then) { hear_words(then); });
    });
  }

  void stop(const net::Failure& why) override {
    attempt_.runner->cancel(attempt_.operation + step_, why);
    attempt_.runner.reset();  // what is left of it is in the transport's hands
  }

  void committed(const std::vector<Contributor>& contributors) override {
    programs_->agreed = static_cast<std::uint32_t>(contributors.size());
    if (!aside_.empty()) std::memcpy(addition_.buffers.output, aside_.data(), bytes_);
    std::exchange(done_, nullptr)(nullptr, contributors);
  }

  void failed(const net::Failure& why) override { std::exchange(done_, nullptr)(why, {}); }

 private:
  // What cannot be done here ends the operation on all.
  static void guarded(const net::Done& held, const std::function<void()>& part) {
    try {
      part();
    } catch (const Error& error) {
      held(std::make_shared<const Error>(error));
    }
  }

  void tell(Step step, std::span<std::byte> bytes, const net::Done& held, std::function<void(const net::Done&)> then) {
    step_ = step;
    const std::uint32_t ranks = attempt_.runner->size();
    const Verified program = verify(build(Collective::broadcast, choose(Collective::broadcast, ranks, static_cast<double>(bytes.size()), {}), ranks));
    Run run;
    run.type = DType::u8;
    run.operation = attempt_.operation + step;
    run.label = addition_.label + ": the network of those that are left";
    attempt_.runner->start(program, Layout::even(program.program(), attempt_.runner->rank(), bytes.size()), {bytes.data(), bytes.data()}, run,
                           [self = shared_from_this(), held, then = std::move(then)](const net::Failure& why) {
                             if (why || !self->attempt_.runner) return held(why);
                             guarded(held, [&] { then(held); });
                           });
  }

  void hear_words(const net::Done& held) {
    if (length_ > kMostWords) throw Error(Code::internal, "a network of " + std::to_string(length_) + " bytes was announced", addition_.label);
    words_.resize(length_);
    const auto hear = [this](const net::Done& then) {
      programs_->hear(words_);
      add(then);
    };
    if (length_ == 0) return hear(held);
    tell(kWords, std::as_writable_bytes(std::span(words_)), held, hear);
  }

  void add(const net::Done& held) {
    step_ = kSum;
    const std::uint32_t ranks = attempt_.runner->size();
    const std::string name = programs_->builder(ranks, bytes_);
    const Verified& program = programs_->named(name, ranks);
    Run run;
    run.type = addition_.type;
    run.op = addition_.op;
    run.slice_bytes = slice_bytes(Collective::all_reduce, name, ranks, static_cast<double>(bytes_), programs_->link);
    run.priority = addition_.priority;
    if (bytes_ <= kUrgentBytes) run.priority.cls = net::Class::urgent;
    run.operation = attempt_.operation + kSum;
    run.label = addition_.label;
    std::byte* const output = aside_.empty() ? addition_.buffers.output : aside_.data();
    attempt_.runner->start(program, Layout::even(program.program(), attempt_.runner->rank(), addition_.count), {addition_.buffers.input, output}, run,
                           held);
  }

  const std::shared_ptr<Programs> programs_;
  const Addition addition_;
  const std::uint64_t bytes_;
  Summed done_;
  Attempt attempt_;
  Step step_ = kSum;               // that runs
  std::uint64_t length_ = 0;       // of the words
  std::string words_;              // of the network of those that are left, while they are told
  std::vector<std::byte> aside_;   // the sum, where the output is the input: that stays until all have it
};

SurvivingGroup::SurvivingGroup(net::Transport& transport, std::vector<net::Rank> members, std::uint16_t channel, Options options)
    : transport_(transport), programs_(std::make_shared<Programs>(members, std::move(options))), survivors_(transport, std::move(members), channel) {
  if (!programs_->options.builder.empty()) programs_->named(programs_->options.builder, programs_->all());
}

void SurvivingGroup::all_reduce(const Addition& addition, Summed done) {
  survivors_.start(std::make_shared<Sum>(programs_, addition, std::move(done)), kSteps, addition.weight, addition.patience, addition.label);
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
