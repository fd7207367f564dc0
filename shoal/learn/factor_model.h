// A factorization that was learnt and kept (model_folder.h), for predictions. Values; threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "shoal/data/triples.h"
#include "shoal/learn/factorization.h"
#include "shoal/learn/model_folder.h"

namespace shoal::learn {

class FactorModel {
 public:
  // Throws Error{invalid_argument} for a folder whose files are none of a factorization, or do not fit each other.
  explicit FactorModel(const ModelFolder& folder);

  struct Prediction {
    double rating;
    bool known;  // user and item; else the mean stands for their product
  };
  // Of each triple, whatever its value. Throws Error{invalid_argument} where only one of model and triples has names.
  std::vector<Prediction> predict(const data::Triples& triples) const;

 private:
  using Row = std::optional<std::uint32_t>;
  std::vector<Row> rows_of(const data::Names& names, std::uint32_t count, const std::optional<data::Names>& known, std::uint64_t rows) const;
  std::span<const float> row(const Tensor& tensor, std::uint32_t number) const {
    return std::span(tensor.values).subspan(number * options_.width(), options_.width());
  }
  Prediction predict(Row user, Row item) const;

  std::string folder_;
  FactorizationOptions options_;
  double mean_ = 0;  // of the ratings that were learnt from
  Tensors tensors_;
  std::optional<data::Names> users_, items_;
};

}  // namespace shoal::learn
