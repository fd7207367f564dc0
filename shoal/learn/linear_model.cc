#include "shoal/learn/linear_model.h"

#include <charconv>

#include "shoal/core/error.h"
#include "shoal/learn/linear.h"

namespace shoal::learn {

std::string label_text(double label) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, label == 0 ? 0.0 : label).ptr};  // -0 is 0
}

data::Names class_names(const std::vector<double>& classes) {
  data::Names names;
  for (const double label : classes) names.number(label_text(label));
  return names;
}

LinearModel::LinearModel(const ModelFolder& folder) {
  folder.understood("linear", [&](const Json& config) {
    const auto names = folder.names("classes");
    if (!names || names->size() < 2) throw Error(Code::mismatch, "classes.txt does not have the classes");
    classes_ = *names;
    columns_ = config.at("columns");
    const Tensors tensors = folder.model().tensors;
    const std::size_t width = width_for(classes_.size());
    weights_ = tensor_of(tensors, "weights", {columns_, width}).values;
    intercept_ = tensor_of(tensors, "intercept", {width}).values;
  });
}

std::vector<double> LinearModel::probabilities(const data::SparseRow& row) const {
  const std::size_t width = intercept_.size();
  std::vector<double> scores(intercept_.begin(), intercept_.end()), probabilities(classes_.size());
  for (std::size_t k = 0; k < row.columns.size() && row.columns[k] < columns_; ++k) {
    const float* weights = &weights_[row.columns[k] * width];
    for (std::size_t j = 0; j < width; ++j) scores[j] += double{row.values[k]} * weights[j];
  }
  softmax(scores, probabilities);
  return probabilities;
}

}  // namespace shoal::learn
