#include "shoal/learn/factor_model.h"

#include "shoal/core/error.h"

namespace shoal::learn {

FactorModel::FactorModel(const ModelFolder& folder) : folder_(folder.path().string()) {
  folder.understood("factorize", [&](const Json& config) {
    options_.factors = config.at("factors");
    options_.biases = config.at("biases");
    options_.non_negative = config.at("non_negative");
    mean_ = config.at("mean");
    tensors_ = folder.model().tensors;
    users_ = folder.names("users");
    items_ = folder.names("items");
    for (const auto& [name, names] : {std::pair("users", &users_), std::pair("items", &items_)}) {
      const auto tensor = tensors_.find(name);
      if (tensor == tensors_.end() || tensor->second.shape.size() != 2 || tensor->second.shape[1] != options_.width()) {
        throw Error(Code::mismatch, std::string("model.safetensors has no rows of ") + name + " that config.json describes");
      }
      if (*names && (*names)->size() != tensor->second.shape[0]) {
        throw Error(Code::mismatch, std::string(name) + ".txt has more or fewer names than there are rows");
      }
    }
  });
}

std::vector<FactorModel::Row> FactorModel::rows_of(const data::Names& names, std::uint32_t count, const std::optional<data::Names>& known, std::uint64_t rows) const {
  if (known.has_value() != (names.size() > 0)) {
    throw Error(Code::invalid_argument, known ? "its rows have names, those of the data only numbers" : "its rows have numbers, those of the data names", folder_,
                "give data of the kind that the model was learnt from");
  }
  std::vector<Row> found(count);
  for (std::uint32_t number = 0; number < count; ++number) {
    if (known) {
      found[number] = known->find(names[number]);
    } else if (number < rows) {
      found[number] = number;
    }
  }
  return found;
}

FactorModel::Prediction FactorModel::predict(Row user, Row item) const {
  const Tensor &users = tensors_.at("users"), &items = tensors_.at("items");
  if (user && item) {
    return {(options_.non_negative ? 0 : mean_) + product(row(users, *user), row(items, *item), options_), true};
  }
  double rating = mean_;
  if (options_.biases && user) rating += row(users, *user).back();
  if (options_.biases && item) rating += row(items, *item).back();
  return {rating, false};
}

std::vector<FactorModel::Prediction> FactorModel::predict(const data::Triples& triples) const {
  const auto users = rows_of(triples.row_names, triples.row_count, users_, tensors_.at("users").shape[0]);
  const auto items = rows_of(triples.column_names, triples.column_count, items_, tensors_.at("items").shape[0]);
  std::vector<Prediction> predictions;
  predictions.reserve(triples.size());
  for (std::size_t i = 0; i < triples.size(); ++i) predictions.push_back(predict(users[triples.rows[i]], items[triples.columns[i]]));
  return predictions;
}

}  // namespace shoal::learn
