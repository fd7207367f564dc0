// Any bytes as what a topic model's folder holds, raw or as the numbers of its tensors, by the first byte: a model whose rows add up, or one line.
// Run fuzz_topic_model [corpus folder].
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/small_numbers.h"
#include "fuzz/target.h"
#include "fuzz/temporary_folder.h"
#include "shoal/core/error.h"
#include "shoal/learn/tensor_file.h"
#include "shoal/learn/topic/document_rows.h"
#include "shoal/learn/topic/model_files.h"

namespace {

using namespace shoal;
namespace fs = std::filesystem;

const fs::path& folder() {
  static const fuzz::TemporaryFolder made;
  static const bool has_words = static_cast<bool>(std::ofstream(made.path() / "vocab.txt") << "a\nb\nc\n");
  if (!has_words) std::abort();
  return made.path();
}

void write(const char* name, const std::uint8_t* data, std::size_t size) {
  std::ofstream(folder() / name, std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
}

void check(const learn::ModelFolder& from) {
  const learn::topic::Model model = learn::topic::read_model(from);
  if (model.words() != model.vocabulary.size() || model.offsets.back() != model.counts.size()) std::abort();
  std::vector<std::uint64_t> sums(model.topics());
  for (const auto& [topic, count] : model.counts) sums.at(topic) += count;
  if (sums != model.totals) std::abort();
  if (const auto rows = learn::topic::read_document_rows(from, model)) {
    if (std::isnan(learn::topic::log_likelihood(model, *rows).total())) std::abort();
  }
}

}  // namespace

SHOAL_FUZZ(topic_model, data, size) {
  if (size < 1) return 0;
  fs::remove(folder() / "doc_counts.safetensors");
  std::ofstream(folder() / "config.json") << R"({"learner":"topics"})";
  if (data[0] == 0) {
    write("model.safetensors", data + 1, size - 1);
  } else if (data[0] == 1) {
    write("config.json", data + 1, size - 1);
  } else {
    fuzz::SmallNumbers numbers(data + 1, size - 1);
    learn::TensorFile model, rows;
    model.others = {{"offsets", numbers.list<std::uint64_t>()}, {"topics", numbers.list<std::uint32_t>()},
                    {"counts", numbers.list<std::uint32_t>()},  {"totals", numbers.list<std::uint64_t>()},
                    {"alpha", numbers.list<double>()},          {"beta", numbers.list<double>()}};
    learn::write_tensor_file(folder() / "model.safetensors", model);
    rows.others = {{"offsets", numbers.list<std::uint64_t>()},
                   {"topics", numbers.list<std::uint32_t>()},
                   {"counts", numbers.list<std::uint32_t>()}};
    learn::write_tensor_file(folder() / "doc_counts.safetensors", rows);
  }
  try {
    check(learn::ModelFolder(folder()));
  } catch (const Error&) {
  }
  return 0;
}
