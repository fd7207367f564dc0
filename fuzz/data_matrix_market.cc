// Any bytes as the lines of a MatrixMarket file: what is accepted lies within the sizes. Run fuzz_data_matrix_market [corpus folder].
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz/target.h"
#include "shoal/data/matrix_market.h"

SHOAL_FUZZ(data_matrix_market, data, size) {
  using namespace shoal::data;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  const auto next = [&] {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    return line;
  };
  MatrixMarket matrix;
  if (parse_banner(next(), matrix).fault || parse_sizes(next(), matrix).fault) return 0;
  Triples triples;
  // The last entries, too: where an array's places come closest to the limits of their arithmetic.
  for (std::uint64_t entry = 0; !rest.empty(); ++entry) {
    const std::string_view line = next();
    for (const std::uint64_t at : {entry, matrix.entries - 1 - entry}) {
      const std::size_t before = triples.size();
      const Verdict verdict = parse_entry(line, matrix, at, triples);
      const std::size_t more = triples.size() - before;
      if (verdict.sample ? more < 1 || more > 2 : more != 0) std::abort();
      for (std::size_t i = before; i < triples.size(); ++i) {
        if (triples.rows[i] >= matrix.rows || triples.columns[i] >= matrix.columns || !std::isfinite(triples.values[i])) std::abort();
      }
    }
  }
  return 0;
}
