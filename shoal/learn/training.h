// Training as a job does it: epoch after epoch on all members, the model kept in rank 0's folder. By all members alike.
#pragma once

#include <functional>
#include <optional>

#include "shoal/learn/model_folder.h"

namespace shoal::learn {

struct Training {
  unsigned epochs = 10;  // in all, with those of a model that is gone on from, or until the learner has converged
  unsigned every = 1;    // epochs between two times that the model is kept; the last is, too
  bool resume = false;   // go on from the folder's model, if it has one
};
struct Watching {
  std::function<void(unsigned epochs)> resumed;                   // before the first epoch, where there are any already
  std::function<void(unsigned epoch, double part)> progressed;
  std::function<void(const Epoch&)> learnt;
};

// folder: rank 0's, begun or gone on with; nullptr on the other members. first: what to begin with where no model is gone on from, rank 0's; on the others any.
void train(Learner& learner, ModelFolder* folder, const Training& training, const Watching& watching, const std::optional<Tensors>& first = {});

}  // namespace shoal::learn
