// Learners on the members of a job, over real sockets.
#pragma once

#include <functional>
#include <memory>

#include "shoal/learn/learner.h"
#include "tests/net/members.h"

namespace shoal::learn {

using Begin = std::function<std::unique_ptr<Learner>(net::Transport& transport)>;

struct Learnt {
  Tensors model;
  std::vector<Epoch> epochs;
  double figure(const std::string& name) const {  // of the last epoch
    for (const auto& [known, value] : epochs.back().figures) {
      if (known == name) return value;
    }
    ADD_FAILURE() << "no figure " << name;
    return 0;
  }
};

// Rank 0's, after so many epochs on so many members; it goes on from `kept` after `done` epochs if there are any, or begins with `kept` after none.
inline Learnt learnt_by(net::Rank members, unsigned epochs, const Begin& begin, unsigned done = 0, const Tensors& kept = {}) {
  Learnt learnt;
  auto jobs = net::join_all(members);
  net::each(members, [&](net::Rank rank) {
    net::Transport& transport = jobs[rank]->transport();
    const auto learner = begin(transport);
    EXPECT_EQ(learner->restore(rank == 0 ? done : 0, rank == 0 ? kept : Tensors{}), done);
    if (done == 0 && !kept.empty()) learner->begin_with(rank == 0 ? kept : Tensors{});
    for (unsigned epoch = done; epoch < epochs; ++epoch) {
      Epoch report = learner->learn([](double) {});
      EXPECT_EQ(report.number, epoch + 1);
      if (rank == 0) learnt.epochs.push_back(std::move(report));
    }
    Tensors model = learner->model();
    if (rank == 0) learnt.model = std::move(model);
  });
  net::leave_all(jobs);
  return learnt;
}

inline void expect_same_bits(const Tensors& one, const Tensors& other) {
  ASSERT_EQ(one.size(), other.size());
  for (const auto& [name, tensor] : one) {
    EXPECT_EQ(tensor.shape, other.at(name).shape) << name;
    EXPECT_EQ(tensor.values, other.at(name).values) << name;
  }
}

}  // namespace shoal::learn
