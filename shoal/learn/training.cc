#include "shoal/learn/training.h"

#include "shoal/core/error.h"

namespace shoal::learn {
namespace {

void begin_with(Learner& learner, const Tensors& first) {
  try {
    learner.begin_with(first);
  } catch (const Error& error) {
    if (error.code() != Code::mismatch) throw;
    throw Error(Code::invalid_argument, error.fact(), "start", "take one that learnt from such data with the same options");
  }
}

}  // namespace

void train(Learner& learner, ModelFolder* folder, const Training& training, const Watching& watching, const std::optional<Tensors>& first) {
  KeptModel kept;
  if (folder != nullptr && training.resume && folder->holds_model()) kept = folder->model();
  const unsigned done = learner.restore(kept.epochs, kept.tensors);
  kept = {};
  if (done > 0) watching.resumed(done);
  if (done == 0 && first) begin_with(learner, *first);
  for (unsigned number = done + 1; number <= training.epochs; ++number) {
    const Epoch epoch = learner.learn([&](double part) { watching.progressed(number, part); });
    const bool keep = number % training.every == 0 || number == training.epochs || epoch.converged;
    const Tensors model = keep ? learner.model() : Tensors{};
    if (folder != nullptr) keep ? folder->add(epoch, model) : folder->add(epoch);
    watching.learnt(epoch);
    if (epoch.converged) return;
  }
}

}  // namespace shoal::learn
