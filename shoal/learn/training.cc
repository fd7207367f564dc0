#include "shoal/learn/training.h"

namespace shoal::learn {

void train(Learner& learner, ModelFolder* folder, const Training& training, const Watching& watching) {
  KeptModel kept;
  if (folder != nullptr && training.resume && folder->holds_model()) kept = folder->model();
  const unsigned done = learner.restore(kept.epochs, kept.tensors);
  kept = {};
  if (done > 0) watching.resumed(done);
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
