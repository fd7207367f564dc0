#include "shoal/data/libsvm.h"

#include <algorithm>
#include <limits>
#include <string>

#include "shoal/data/number.h"

namespace shoal::data {
namespace {

bool ends_token(const char* at, const char* end) { return at == end || is_space(*at) || *at == '#'; }

// What stands at `token`, for an error line.
std::string word(const char* token, const char* end) { return quote(std::string_view(token, std::find_if(token, end, is_space))); }

Fault no_label(const char* token, const char* end, Scan scan) {
  if (scan == Scan::not_finite) return {Reason::not_finite, "the label is " + word(token, end), "give the sample a number, or leave it out"};
  return {Reason::number, word(token, end) + " is no label", "a line is: label index:value index:value ..., the label one number"};
}

Fault no_pair(const char* token, const char* end) {
  return {Reason::number, word(token, end) + " is no index:value", "a line is: label index:value index:value ..."};
}

Fault no_value(const char* token, const char* end, Scan scan) {
  if (scan == Scan::not_finite)
    return {Reason::not_finite, word(token, end) + " is not finite", "give it a number, or leave the pair out, which means 0"};
  if (scan == Scan::too_large) return {Reason::range, word(token, end) + " is beyond a 32-bit floating-point number", "scale the column"};
  return no_pair(token, end);
}

Fault index_zero() { return {Reason::range, "there is an index 0", "indices count from 1; say zero-based if this file counts from 0"}; }

Fault index_beyond(const char* token, const char* end, const LibsvmForm& form) {
  if (form.columns == 0) return {Reason::range, word(token, end) + " is in a column beyond 4294967295", "that many columns can be read"};
  return {Reason::range, word(token, end) + " is in a column beyond " + std::to_string(form.columns), "read it with as many columns as it has"};
}

Fault not_ascending(std::uint64_t index, std::uint64_t before) {
  return {Reason::order, "index " + std::to_string(index) + " stands after index " + std::to_string(before), "indices of a line ascend, each once"};
}

}  // namespace

Verdict parse_libsvm(std::string_view line, const LibsvmForm& form, SparseRows& into) {
  const char* const end = line.data() + line.size();
  const char* at = skip_spaces(line.data(), end);
  if (at == end || *at == '#') return {};

  const auto back_out = [&](Fault fault) {
    into.columns.resize(into.offsets.back());
    into.values.resize(into.offsets.back());
    return Verdict::refused(std::move(fault));
  };

  const char* token = at;
  double label = 0;
  if (const Scan scan = scan_real(at, end, label); scan != Scan::fine || !ends_token(at, end)) return back_out(no_label(token, end, scan));

  const std::uint64_t first = form.zero_based ? 0 : 1;
  const std::uint64_t last = (form.columns != 0 ? form.columns : std::numeric_limits<std::uint32_t>::max()) - 1 + first;
  std::uint64_t lowest = first;  // that the next index may be
  bool query = false;
  for (at = skip_spaces(at, end); at != end && *at != '#'; at = skip_spaces(at, end)) {
    token = at;
    std::uint64_t index = 0;
    if (const Scan scan = scan_index(at, end, index); scan != Scan::fine || at == end || *at != ':') {
      if (scan == Scan::too_large) return back_out(index_beyond(token, end, form));
      if (!std::string_view(token, end).starts_with("qid:")) return back_out(no_pair(token, end));
      query = true;
      while (!ends_token(at, end)) ++at;
      continue;
    }
    ++at;
    float value = 0;
    if (const Scan scan = scan_real(at, end, value); scan != Scan::fine || !ends_token(at, end)) return back_out(no_value(token, end, scan));
    if (index < first) return back_out(index_zero());
    if (index > last) return back_out(index_beyond(token, end, form));
    if (index < lowest) return back_out(not_ascending(index, lowest - 1));
    lowest = index + 1;
    into.columns.push_back(static_cast<std::uint32_t>(index - first));
    into.values.push_back(value);
  }
  into.labels.push_back(label);
  into.offsets.push_back(into.columns.size());
  into.width = form.columns != 0 ? form.columns : std::max(into.width, static_cast<std::uint32_t>(lowest - first));
  return {.sample = true, .query = query};
}

LibsvmReader::LibsvmReader(std::vector<std::filesystem::path> files, LibsvmForm form, const ReadOptions& options)
    : form_(form), intake_(std::move(files), options) {}

bool LibsvmReader::next(SparseRows& batch, std::size_t most) {
  Read& read = intake_.read;
  batch.clear();
  batch.width = static_cast<std::uint32_t>(read.columns);
  std::string_view line;
  while (batch.size() < most && intake_.next(line)) {
    const std::size_t values = batch.values.size();
    const Verdict verdict = parse_libsvm(line, form_, batch);
    read.values += batch.values.size() - values;
    if (!intake_.keeps(verdict) && verdict.sample) batch.drop_last();
  }
  read.columns = batch.width;
  intake_.require_samples();
  return batch.size() > 0;
}

std::pair<SparseRows, Read> read_libsvm(std::vector<std::filesystem::path> files, LibsvmForm form, const ReadOptions& options) {
  LibsvmReader reader(std::move(files), form, options);
  SparseRows rows;
  reader.next(rows, std::numeric_limits<std::size_t>::max());
  return {std::move(rows), reader.read()};
}

}  // namespace shoal::data
