#include "shoal/collective/probe.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "shoal/collective/build.h"
#include "shoal/collective/noise.h"
#include "shoal/collective/rehearsal.h"
#include "shoal/collective/select.h"
#include "shoal/core/reduce.h"

namespace shoal::collective {
namespace {

constexpr int kAlphaRepeats = 24, kAlphaWarmup = 4;
constexpr int kRateRepeats = 3, kRateWarmup = 1;    // the first one touches its windows' memory for the first time
constexpr std::uint64_t kFirstBytes = 1 << 20, kMostBytes = 32 << 20;
constexpr double kMeetingMargin = 0.97;              // flows that meet vary more from run to run than a few repeats show
constexpr double kShortSum = 0.02;                // seconds of a sum that shows what a link saves up in as long a pause
constexpr std::size_t kPairs = 5;                 // one or two that something else has disturbed are outvoted
constexpr double kMostSaved = 0.6, kLeastSaved = 0.12, kLongestSum = 0.3;  // of the sum: above, the sum is too short to show all; below, it is noise
constexpr double kLongSum = 0.05;                 // seconds one all-reduce must take to be a measure of rate
constexpr std::size_t kAddBytes = 128 * 1024;        // a slice: stays in L2
constexpr int kAddRepeats = 16;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

double measure_add_rate() {
  std::vector<float> into(kAddBytes / sizeof(float)), from(into.size());
  std::vector<double> seconds;
  for (int i = 0; i < kAddRepeats; ++i) {
    const Instant begin = steady_now();
    reduce(DType::f32, ReduceOp::sum, into.data(), from.data(), into.size());
    seconds.push_back(Seconds(steady_now() - begin).count());
  }
  return static_cast<double>(kAddBytes) / std::max(median(std::move(seconds)), 1e-9);
}

// alpha and fan_in_alpha from the smallest all-reduce, by recursive doubling and by the gather program; rate and fan_in from
// the largest that is needed, by the ring and the direct program; what links save up from how much sooner a ring is done behind a pause than
// the one after it; then the worst of all members.
class Probe : public std::enable_shared_from_this<Probe> {
 public:
  Probe(Runner& runner, std::uint64_t operation, Instant deadline, Probed done)
      : rehearsal_(runner, operation, deadline, "the probe of the links"), done_(std::move(done)) {}

  void begin() {
    model_.add_rate = measure_add_rate();
    if (rehearsal_.size() == 1) return rehearsal_.later([self = shared_from_this()] { self->done_(nullptr, self->model_); });
    small_.assign(1, 0);
    measure("gather", small_, kAlphaWarmup, kAlphaRepeats, [this](double seconds) {
      model_.fan_in_alpha = seconds;
      measure("recursive_doubling", small_, kAlphaWarmup, kAlphaRepeats, [this](double all) {
        const double steps = price(Collective::all_reduce, "recursive_doubling", rehearsal_.size(), 0, {.alpha = 1});
        model_.alpha = all / steps;
        measure_rate(kFirstBytes);
      });
    });
  }

 private:
  // One all-reduce, to next(seconds); what fails ends the probe.
  void all_reduce(const char* program, ReduceOp op, std::vector<double>& values, std::function<void(double)> next) {
    rehearsal_.all_reduce(program, op, values, [self = shared_from_this(), next = std::move(next)](const net::Failure& why, double seconds) {
      if (why) return self->done_(why, {});
      next(seconds);
    });
  }

  // The median of some repeats of one all-reduce, to then(seconds).
  void measure(const char* program, std::vector<double>& values, int warmup, int repeats, std::function<void(double)> then) {
    all_reduce(program, ReduceOp::sum, values, [this, program, &values, warmup, repeats, then](double seconds) {
      times_.push_back(seconds);
      if (std::ssize(times_) < warmup + repeats) return measure(program, values, warmup, repeats, then);
      times_.erase(times_.begin(), times_.begin() + warmup);
      then(median(std::exchange(times_, {})));
    });
  }

  void measure_rate(std::uint64_t bytes) {
    fill_with_noise(large_, bytes / sizeof(double));
    measure("ring", large_, kRateWarmup, kRateRepeats, [this, bytes](double seconds) { agree_on_size(bytes, seconds); });
  }

  // bytes_a_second: of sums, the same on all members.
  void measure_fan_in(std::uint64_t bytes, double bytes_a_second) {
    measure("direct", large_, kRateWarmup, kRateRepeats, [this, bytes, bytes_a_second](double seconds) {
      model_.fan_in = kMeetingMargin * rate_of(bytes, seconds, 2, model_.fan_in_alpha);
      if (kShortSum * bytes_a_second > static_cast<double>(kMostBytes)) return agree();  // no link
      measure_saved(kShortSum, bytes_a_second);
    });
  }

  // With sums that take so many seconds where nothing is saved up: in pairs, one behind a pause that lasts as long as it
  // does, and one behind that one, which finds nothing left. Where any member sees most of a sum sooner, it is too short to
  // show all. (A sum that is mostly latency sends less than is saved up meanwhile: then nothing is seen.)
  void measure_saved(double sum, double bytes_a_second) {
    const double members = rehearsal_.size(), steps = 2 * (members - 1);
    fill_with_noise(large_, std::max<std::size_t>(rehearsal_.size(), static_cast<std::size_t>(sum * bytes_a_second / sizeof(double))));
    const double sent = steps / members * static_cast<double>(large_.size() * sizeof(double));
    measure_pairs(sum, [this, sum, bytes_a_second, sent](const std::vector<double>& sooner) {
      const double saved = median(sooner) * model_.rate / sent;
      const double part = saved < kLeastSaved ? 0 : std::min(1.0, saved);
      small_ = {part, -part};
      all_reduce("gather", ReduceOp::max, small_, [this, sum, bytes_a_second, sent](double) {
        const double most = small_[0], least = -small_[1];
        if (most > kMostSaved && sum < kLongestSum && 2 * sum * bytes_a_second <= static_cast<double>(kMostBytes)) return measure_saved(2 * sum, bytes_a_second);
        model_.saves = least * sent;
        agree();
      });
    });
  }

  // By how many seconds the first of each pair is done sooner. Who has received all may still have bytes of its own on its
  // link, which then saves nothing up: the pause begins when a small sum tells that all members have received all.
  void measure_pairs(double pause, std::function<void(const std::vector<double>&)> then) {
    all_reduce("gather", ReduceOp::max, small_, [this, pause, then](double) {
      const Instant begin = rehearsal_.transport().now() + std::chrono::duration_cast<Nanoseconds>(Seconds(pause));
      rehearsal_.transport().at(begin, [self = shared_from_this(), pause, then] { self->measure_pair(pause, then); });
    });
  }
  void measure_pair(double pause, std::function<void(const std::vector<double>&)> then) {
    all_reduce("ring", ReduceOp::sum, large_, [this, pause, then](double first) {
      all_reduce("ring", ReduceOp::sum, large_, [this, first, pause, then](double second) {
        times_.push_back(second - first);
        if (times_.size() < kPairs) return measure_pairs(pause, then);
        then(std::exchange(times_, {}));
      });
    });
  }

  double rate_of(std::uint64_t bytes, double seconds, double steps, double alpha) const {
    const double members = rehearsal_.size();
    const double sent = 2 * (members - 1) / members * static_cast<double>(bytes);
    return sent / std::max(seconds - steps * alpha, seconds / 2);
  }

  // The slowest member's time decides for all whether the size was large enough.
  void agree_on_size(std::uint64_t bytes, double seconds) {
    small_.assign(1, seconds);
    all_reduce("gather", ReduceOp::max, small_, [this, bytes](double) {
      const double slowest = small_[0];
      if (slowest < kLongSum && bytes < kMostBytes) return measure_rate(2 * bytes);
      model_.rate = rate_of(bytes, slowest, 2 * (rehearsal_.size() - 1), model_.alpha);
      measure_fan_in(bytes, static_cast<double>(bytes) / slowest);
    });
  }

  void agree() {
    small_ = {model_.alpha, 1 / model_.rate, 1 / model_.add_rate, 1 / model_.fan_in, model_.fan_in_alpha};  // what they save up is agreed on
    all_reduce("gather", ReduceOp::max, small_, [this](double) {
      done_(nullptr, {.alpha = small_[0], .rate = 1 / small_[1], .add_rate = 1 / small_[2], .fan_in = 1 / small_[3], .fan_in_alpha = small_[4],
                      .saves = model_.saves});
    });
  }

  Rehearsal rehearsal_;
  Probed done_;
  LinkModel model_;
  std::vector<double> small_, large_, times_;
};

}  // namespace

void probe(Runner& runner, std::uint64_t operation, Instant deadline, Probed done) {
  std::make_shared<Probe>(runner, operation, deadline, std::move(done))->begin();
}

LinkModel probe(net::Transport& transport, std::uint64_t operation, Instant deadline) {
  return rehearse<LinkModel>(transport, deadline,
                             [=](Runner& runner, Probed done) { probe(runner, operation, deadline, std::move(done)); });
}

LinkModel probe(net::Transport& transport, const std::vector<net::Rank>& members, std::uint64_t operation, Instant deadline) {
  return rehearse<LinkModel>(transport, members, deadline,
                             [=](Runner& runner, Probed done) { probe(runner, operation, deadline, std::move(done)); });
}

}  // namespace shoal::collective
