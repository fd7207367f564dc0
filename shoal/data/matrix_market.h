// Matrices in MatrixMarket's text (Boisvert, Pozo and Remington, NISTIR 5935, 1996): coordinate and array, of reals, integers or a pattern, general,
// symmetric or skew-symmetric. They become triples whose rows and columns are their numbers, from 0, without names; of a symmetric matrix, whose
// file has one triangle, both. A pattern's values are 1; an array's zeros are triples too.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include "shoal/data/read.h"
#include "shoal/data/triples.h"

namespace shoal::data {

struct MatrixMarket {
  enum class Format : std::uint8_t { coordinate, array };
  enum class Field : std::uint8_t { real, integer, pattern };
  enum class Symmetry : std::uint8_t { general, symmetric, skew_symmetric };

  Format format = Format::coordinate;
  Field field = Field::real;
  Symmetry symmetry = Symmetry::general;
  std::uint32_t rows = 0, columns = 0;
  std::uint64_t entries = 0;  // lines that the file has below its sizes
};

// What the first line and that of the sizes say. They have no sample: a verdict without a fault means that they are read.
Verdict parse_banner(std::string_view line, MatrixMarket& matrix);
Verdict parse_sizes(std::string_view line, MatrixMarket& matrix);
// Appends what entry number `entry`, from 0, stands for to `into`: one triple or two. Pure but for that.
Verdict parse_entry(std::string_view line, const MatrixMarket& matrix, std::uint64_t entry, Triples& into);

class MatrixMarketReader {
 public:
  // Reads up to the sizes. Throws Error{invalid_argument} where they are none that can be read.
  explicit MatrixMarketReader(std::filesystem::path file, const ReadOptions& options = {});

  // Puts the triples of this member's next entries into `batch`, at most so many entries, in place of what it had. False when none is left. Throws
  // as LibsvmReader::next, and where the file has more or fewer entries than its sizes say.
  bool next(Triples& batch, std::size_t most);
  const MatrixMarket& matrix() const { return matrix_; }
  const Read& read() const { return intake_.read; }  // so far; its samples are entries

 private:
  bool next_line(std::string_view& line);  // below the banner: without comments and blank ones

  Intake intake_;
  MatrixMarket matrix_;
  std::uint64_t seen_ = 0;  // entries
};

std::pair<Triples, Read> read_matrix_market(std::filesystem::path file, const ReadOptions& options = {});

}  // namespace shoal::data
