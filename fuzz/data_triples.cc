// Any bytes as lines of triples: the first lines tell a form or are refused, and each line is a triple whose names have numbers, or leaves nothing.
// Run fuzz_data_triples [corpus folder].
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/target.h"
#include "shoal/core/error.h"
#include "shoal/data/triples.h"

SHOAL_FUZZ(data_triples, data, size) {
  using namespace shoal::data;
  std::vector<std::string> lines(1);
  for (const char c : std::string_view(reinterpret_cast<const char*>(data), size)) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  try {
    const TripleForm form = form_of(lines, "fuzz");
    if (form.fields < 2 || form.fields > 3) std::abort();
    Triples triples;
    for (const auto& line : lines) {
      const std::size_t before = triples.size();
      const auto names = triples.row_names.size() + triples.column_names.size();
      const Verdict verdict = parse_triple(line, form, triples);
      if (verdict.sample && verdict.fault) std::abort();
      if (triples.size() != before + (verdict.sample ? 1 : 0)) std::abort();
      if (!verdict.sample && names != triples.row_names.size() + triples.column_names.size()) std::abort();
      if (!verdict.sample) continue;
      if (triples.rows.back() >= triples.row_count || triples.columns.back() >= triples.column_count || !std::isfinite(triples.values.back()))
        std::abort();
      if (triples.row_names.find(triples.row_names[triples.rows.back()]) != triples.rows.back()) std::abort();
    }
  } catch (const shoal::Error&) {
  }
  return 0;
}
