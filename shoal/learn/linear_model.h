// A linear model that was learnt and kept (model_folder.h), for predictions. Values; threads: any.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "shoal/data/names.h"
#include "shoal/data/sparse_rows.h"
#include "shoal/learn/model_folder.h"

namespace shoal::learn {

// A class's label as text: the shortest that is the same number.
std::string label_text(double label);
// The labels of `classes`, for ModelFolder::write_names("classes", ...).
data::Names class_names(const std::vector<double>& classes);

class LinearModel {
 public:
  // Throws Error{invalid_argument} for a folder whose files are none of a linear model, or do not fit each other.
  explicit LinearModel(const ModelFolder& folder);

  std::uint32_t columns() const { return columns_; }
  std::string_view class_name(std::uint32_t number) const { return classes_[number]; }
  std::uint32_t classes() const { return classes_.size(); }
  // The class of a label as the data has it; none that the model does not know.
  std::optional<std::uint32_t> class_of(double label) const { return classes_.find(label_text(label)); }
  // One a class. Columns that the model does not know have no weight.
  std::vector<double> probabilities(const data::SparseRow& row) const;

 private:
  std::uint32_t columns_ = 0;
  std::vector<float> weights_, intercept_;
  data::Names classes_;
};

}  // namespace shoal::learn
