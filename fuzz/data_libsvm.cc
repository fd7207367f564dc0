// Any bytes as a line of LIBSVM's text: a row that holds what rows promise, or nothing is kept of it. Run fuzz_data_libsvm [corpus folder].
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz/target.h"
#include "shoal/data/libsvm.h"

SHOAL_FUZZ(data_libsvm, data, size) {
  using namespace shoal::data;
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  for (const LibsvmForm& form : {LibsvmForm{}, LibsvmForm{.columns = 100, .zero_based = true}}) {
    SparseRows rows;
    rows.append({1, {}, {}});
    const Verdict verdict = parse_libsvm(line, form, rows);
    if (verdict.sample && verdict.fault) std::abort();
    if (rows.size() != (verdict.sample ? 2u : 1u) || rows.offsets.size() != rows.size() + 1) std::abort();
    if (rows.columns.size() != rows.offsets.back() || rows.values.size() != rows.offsets.back()) std::abort();
    for (std::size_t i = 0; i < rows.columns.size(); ++i) {
      if (rows.columns[i] >= rows.width || (i > 0 && rows.columns[i] <= rows.columns[i - 1]) || !std::isfinite(rows.values[i])) std::abort();
    }
    if (!std::isfinite(rows.labels.back())) std::abort();
  }
  return 0;
}
