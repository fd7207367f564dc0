#include "shoal/learn/topic/document_rows.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "shoal/learn/tensor_file.h"
#include "shoal/learn/topic/model_files.h"

namespace shoal::learn::topic {
namespace {

constexpr const char* kFile = "doc_counts.safetensors";

}  // namespace

void DocumentRows::add(std::span<const TopicCount> counts) {
  counts_.insert(counts_.end(), counts.begin(), counts.end());
  offsets_.push_back(counts_.size());
}

void write_document_rows(const ModelFolder& folder, const std::optional<DocumentRows>& rows) {
  if (!rows) {
    std::error_code none;
    std::filesystem::remove(folder.path() / kFile, none);
    return;
  }
  TensorOf<std::uint64_t> offsets{{rows->size() + 1}, {0}};
  TensorOf<std::uint32_t> topics, counts;
  for (std::size_t d = 0; d < rows->size(); ++d) {
    for (const auto& [topic, count] : (*rows)[d]) {
      topics.values.push_back(topic);
      counts.values.push_back(count);
    }
    offsets.values.push_back(topics.values.size());
  }
  topics.shape = counts.shape = {topics.values.size()};
  TensorFile file;
  file.others = {{"offsets", std::move(offsets)}, {"topics", std::move(topics)}, {"counts", std::move(counts)}};
  write_tensor_file(folder.path() / kFile, file);
}

std::optional<DocumentRows> read_document_rows(const ModelFolder& folder, const Model& model) {
  if (std::error_code none; !std::filesystem::exists(folder.path() / kFile, none)) return std::nullopt;
  const TensorFile file = read_tensor_file(folder.path() / kFile);
  const auto expect = [&](bool holds, const std::string& otherwise) {
    if (!holds) throw folder.damaged(kLearner, std::string(kFile) + " " + otherwise);
  };
  const auto numbers = [&]<class Number>(const char* name, Number) -> std::span<const Number> {
    const auto found = file.others.find(name);
    const auto* const tensor = found == file.others.end() ? nullptr : std::get_if<TensorOf<Number>>(&found->second);
    expect(tensor != nullptr && tensor->shape.size() == 1, std::string("has no ") + name);
    return tensor->values;
  };
  const auto offsets = numbers("offsets", std::uint64_t{});
  const auto topics = numbers("topics", std::uint32_t{}), counts = numbers("counts", std::uint32_t{});
  expect(topics.size() == counts.size() && !offsets.empty() && offsets.front() == 0 && offsets.back() == topics.size() &&
             std::ranges::is_sorted(offsets), "has rows that do not fit each other");
  DocumentRows rows;
  std::vector<std::uint64_t> sums(model.topics());
  std::vector<TopicCount> row;
  for (std::size_t d = 0; d + 1 < offsets.size(); ++d) {
    row.clear();
    for (std::uint64_t i = offsets[d]; i < offsets[d + 1]; ++i) {
      expect(topics[i] < model.topics() && (i == offsets[d] || topics[i - 1] < topics[i]),
             "has a row of topics out of order, for document " + std::to_string(d + 1));
      sums[topics[i]] += counts[i];
      row.push_back({topics[i], counts[i]});
    }
    rows.add(row);
  }
  expect(sums == model.totals, "has documents whose tokens are not those of the model");
  return rows;
}

LogLikelihood log_likelihood(const Model& model, const DocumentRows& rows) {
  LogLikelihood sum = log_likelihood(model);
  const Likelihood likelihood(model.prior, model.words());
  for (std::size_t d = 0; d < rows.size(); ++d) likelihood.add_document(rows[d], sum);
  return sum;
}

}  // namespace shoal::learn::topic
