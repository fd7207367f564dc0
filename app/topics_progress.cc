#include "app/topics_progress.h"

#include <fmt/format.h>

#include <cmath>

#include "shoal/learn/topic/memory.h"

namespace shoal::app {

std::string show_left(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", seconds);
  const auto minutes = static_cast<long>(std::lround(seconds / 60));
  return minutes < 100 ? fmt::format("{} min", minutes) : fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string sentence(const TrainingNow& now) {
  std::string text = fmt::format("sweep {} of {}", now.sweep, now.sweeps);
  if (now.rate > 0) text += fmt::format(", {:.1f} M tokens/s", now.rate / 1e6);
  if (now.log_likelihood != 0) text += fmt::format(", log-likelihood {:.3f}", now.log_likelihood);
  if (now.perplexity > 0) text += fmt::format(", perplexity {:.0f}", now.perplexity);
  text += fmt::format(", {:.0f} MB", now.memory / 1e6);
  if (now.left > 0) text += ", " + show_left(now.left) + " left";
  return text;
}

TrainingProgress::TrainingProgress(bool shown, double tokens, unsigned begun, unsigned sweeps)
    : progress_(shown), tokens_(tokens), since_(begun) {
  now_.sweeps = sweeps;
}

void TrainingProgress::at(unsigned sweep, double part) {
  if (!progress_.due()) return;
  const double done = sweep - 1 + part, seconds = seconds_between(began_, steady_now()), speed = (done - since_) / seconds;
  now_.sweep = sweep;
  if (done > since_) now_.rate = tokens_ * speed;
  now_.left = done > since_ ? (now_.sweeps - done) / speed : 0;
  now_.memory = static_cast<double>(learn::topic::resident());
  progress_.at(sentence(now_), done / now_.sweeps);
}

void TrainingProgress::looked(const learn::topic::Look& look) {
  clear();
  now_.log_likelihood = look.log_likelihood;
  now_.perplexity = look.perplexity;
  since_ = look.sweep;
  began_ = steady_now();
}

}  // namespace shoal::app
