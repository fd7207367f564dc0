// Tables whose gradients have few rows, such as embeddings: what the plan is to know of them, and their rows in the form in which they leave
// (exchange::Rows) and come back. A table whose gradient autograd makes sparse gets a sparse mean; any other a dense one.
//
// Threads: the caller's, as data_parallel.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "shoal/exchange/flow.h"
#include "shoal/exchange/plan.h"
#include "shoal/nn/tensors.h"

namespace shoal::nn {

struct Table {
  std::size_t parameter = 0;
  bool sparse = false;  // its gradient is sparse in its first dimension, as of torch.nn.Embedding(sparse=True)
};

class Tables {
 public:
  // Those of `announced` that are matrices of real numbers, row by row in memory; the others are treated like any parameter.
  Tables(const std::vector<NamedTensor>& parameters, const std::vector<Table>& announced);

  void describe(std::vector<exchange::TensorSpec>& specs) const;  // width, touched rows as counted last, whether sparse
  bool is_sparse(std::size_t i) const { return of_[i].sparse; }
  // Counts the rows of a dense gradient that are not zero, if parameter i is such a table.
  void note(std::size_t i, const at::Tensor& gradient);
  // The distinct rows of a sparse gradient, ascending. Their memory stays until clear(). Throws Error{unsupported} naming the parameter
  // unless the gradient is sparse in the first dimension alone.
  exchange::Rows rows(std::size_t i, const at::Tensor& gradient);
  void clear();  // the iteration is over

 private:
  struct One {
    std::string name;
    std::uint64_t width = 0;  // 0: no table
    bool sparse = false;
    std::uint64_t noted = 0, touched = 0;  // rows: in this iteration so far, in the last one in which they were counted
    at::Tensor index, values;
  };
  std::vector<One> of_;  // by parameter
};

// The mean in memory of its own: sparse, coalesced, of the parameter's shape; placed: a tensor of the host where the parameter lies.
at::Tensor sparse_mean(const exchange::Rows& rows, const at::Tensor& parameter, const std::function<at::Tensor(const at::Tensor&)>& placed);

}  // namespace shoal::nn
