#include "shoal/data/samples.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>

#include "shoal/core/error.h"
#include "shoal/data/idx.h"
#include "shoal/data/libsvm.h"
#include "shoal/data/matrix_market.h"

namespace shoal::data {
namespace {

constexpr std::string_view kMatrixMarket = "%%MatrixMarket";

std::string first_bytes(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return {};  // what is looked at in a pipe is gone
  std::string bytes(kMatrixMarket.size(), '\0');
  bytes.resize(UnpackedFile(file).read(bytes));
  return bytes;
}

// Rows that are in memory, batch by batch.
class RowsReader {
 public:
  RowsReader(SparseRows rows, Read read) : rows_(std::move(rows)), read_(std::move(read)) {}
  bool next(SparseRows& batch, std::size_t most) {
    batch.clear();
    batch.width = rows_.width;
    const std::size_t count = std::min(most, rows_.size() - given_);
    batch.append(rows_.slice(given_, count));
    given_ += count;
    return count > 0;
  }
  const Read& read() const { return read_; }

 private:
  SparseRows rows_;
  Read read_;
  std::size_t given_ = 0;
};

RowsReader matrix_rows(const std::vector<std::filesystem::path>& files, bool skip_faulty) {
  if (files.size() > 1) {
    throw Error(Code::invalid_argument, "a matrix is one file, and " + std::to_string(files.size()) + " are given", files.front().string());
  }
  auto [triples, read] = read_matrix_market(files.front(), {.share = {}, .skip_faulty = skip_faulty});
  SparseRows rows = rows_of(triples);
  read.values = rows.values.size();
  read.samples = read.kept = triples.row_count;
  read.rows = 0;
  return {std::move(rows), std::move(read)};
}

}  // namespace

SparseRows rows_of(const Triples& triples) {
  SparseRows rows;
  rows.width = triples.column_count;
  rows.labels.assign(triples.row_count, 0);
  std::vector<std::uint64_t> order(triples.size());
  std::iota(order.begin(), order.end(), std::uint64_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::uint64_t a, std::uint64_t b) {
    return std::pair(triples.rows[a], triples.columns[a]) < std::pair(triples.rows[b], triples.columns[b]);
  });
  rows.offsets.assign(triples.row_count + std::size_t{1}, 0);
  std::uint32_t row = 0;
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::uint64_t i = order[at];
    if (at > 0 && triples.rows[order[at - 1]] == triples.rows[i] && triples.columns[order[at - 1]] == triples.columns[i]) {
      rows.values.back() += triples.values[i];
      continue;
    }
    while (row < triples.rows[i]) rows.offsets[++row] = rows.columns.size();
    rows.columns.push_back(triples.columns[i]);
    rows.values.push_back(triples.values[i]);
  }
  while (row < triples.row_count) rows.offsets[++row] = rows.columns.size();
  return rows;
}

SampleReader::SampleReader(std::vector<std::filesystem::path> files, bool skip_faulty) {
  const auto use = [this](auto reader) {
    next_ = [reader](SparseRows& batch, std::size_t most) { return reader->next(batch, most); };
    read_ = [reader]() -> const Read& { return reader->read(); };
  };
  const std::string begin = files.empty() ? std::string() : first_bytes(files.front());
  if (is_idx(begin)) {
    use(std::make_shared<IdxReader>(std::move(files)));
  } else if (begin == kMatrixMarket) {
    use(std::make_shared<RowsReader>(matrix_rows(files, skip_faulty)));
  } else {
    use(std::make_shared<LibsvmReader>(std::move(files), LibsvmForm{}, ReadOptions{.share = {}, .skip_faulty = skip_faulty}));
  }
}

std::pair<SparseRows, Read> read_samples(std::vector<std::filesystem::path> files, bool skip_faulty) {
  SampleReader reader(std::move(files), skip_faulty);
  SparseRows rows;
  reader.next(rows, std::numeric_limits<std::size_t>::max());
  return {std::move(rows), reader.read()};
}

}  // namespace shoal::data
