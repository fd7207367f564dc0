#include "shoal/data/read.h"

#include <numeric>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::data {
const char* name(Reason reason) {
  switch (reason) {
    case Reason::number: return "no number";
    case Reason::not_finite: return "not finite";
    case Reason::range: return "out of range";
    case Reason::order: return "out of order";
    case Reason::fields: return "fields";
  }
  return "unknown";
}

std::uint64_t Read::skipped() const { return std::accumulate(dropped.begin(), dropped.end(), std::uint64_t{0}); }

std::string sentence(const Read& read, const Nouns& nouns) {
  std::string text = "read " + show_count(read.samples, nouns.samples) + " of ";
  if (read.rows > 0) text += show_count(read.rows, nouns.rows) + " and ";
  text += show_count(read.columns, nouns.columns);
  if (read.rows == 0) text += " with " + show_count(read.values, "values");
  text += " from " + read.files.front().filename().string();
  if (read.files.size() > 1) text += " and " + show_count(read.files.size() - 1, "more files");
  if (!read.form.empty()) text += ", " + read.form;
  if (read.queries > 0) text += "; " + show_count(read.queries, "query ids") + " left out";
  if (read.kept != read.samples) text += "; " + show_count(read.kept) + " of them here";
  text += "; " + show_count(read.skipped(), "lines") + " skipped";
  if (read.skipped() == 0) return text;
  const char* before = " (";
  for (std::size_t i = 0; i < kReasons; ++i) {
    if (read.dropped[i] == 0) continue;
    text += before + show_count(read.dropped[i]) + " " + name(static_cast<Reason>(i));
    before = ", ";
  }
  return text + "; the first: " + read.first_dropped + ")";
}

Intake::Intake(std::vector<std::filesystem::path> files, const ReadOptions& options) : lines(std::move(files)), options_(options) {
  const auto member = options_.share.member, members = options_.share.members;
  if (member >= members) {
    throw Error(Code::invalid_argument, "there is no member " + std::to_string(member) + " of " + std::to_string(members), {},
                "members count from 0");
  }
  read.files = lines.files();
}

bool Intake::next(std::string_view& line) {
  if (!lines.next(line)) return false;
  ++read.lines;
  return true;
}

void Intake::require_samples() const {
  if (read.samples > 0) return;
  const std::string file = read.files.front().string();
  if (read.skipped() == 0) throw Error(Code::invalid_argument, "has no sample", file, "is it the right file?");
  throw Error(Code::invalid_argument, "has no sample, " + show_count(read.skipped(), "lines") + " skipped", file, "the first: " + read.first_dropped);
}

bool Intake::keeps(const Verdict& verdict) {
  if (verdict.sample) {
    if (verdict.query) ++read.queries;
    const bool ours = options_.share.holds(read.samples++);
    if (ours) ++read.kept;
    return ours;
  }
  if (!verdict.fault) return false;
  const Fault& fault = *verdict.fault;
  if (!options_.skip_faulty) throw Error(Code::invalid_argument, fault.what, lines.place(), fault.hint);
  if (read.skipped() == 0) read.first_dropped = lines.place() + ": " + fault.what;
  ++read.dropped[static_cast<std::size_t>(fault.reason)];
  return false;
}

}  // namespace shoal::data
