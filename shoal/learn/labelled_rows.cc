#include "shoal/learn/labelled_rows.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "shoal/data/samples.h"
#include "shoal/learn/order.h"

namespace shoal::learn {
namespace {

constexpr std::size_t kRowsTogether = 1 << 14;  // rows that are looked at together
constexpr std::size_t kFirst = 1000;     // rows that all members keep

[[noreturn]] void refuse(const Source& source, const std::string& what, const std::string& hint) {
  throw Error(Code::invalid_argument, what, source.files.empty() ? "data" : source.files.front().string(), hint);
}

class RowDealer {
 public:
  RowDealer(LabelledRows& rows, const Source& source, Labels labels) : rows_(rows), source_(source), labels_(labels) {
    if (source.rows_in.empty()) return;
    rows.own = data::RowStore::in(source.rows_in);
    rows.own_held_out = data::RowStore::in(source.rows_in);
  }

  void read(const std::vector<std::filesystem::path>& files, bool test_files) {
    data::SampleReader reader(files, source_.skip_faulty);
    for (data::SparseRows batch; reader.next(batch, kRowsTogether);) take(batch, test_files);
    rows_.read.push_back(reader.read());
  }

  void take(const data::SparseRows& batch, bool test_files) {
    for (std::size_t i = 0; i < batch.size(); ++i) take(batch[i], test_files);
    rows_.columns = std::max(rows_.columns, batch.width);
  }

  void finish() {
    if (rows_.count == 0) refuse(source_, "all rows are held out, nothing is left to learn from", "a smaller test share, or more data");
    rows_.digest = digest_.value();
    for (data::RowStore* rows : {&rows_.own, &rows_.own_held_out}) {
      rows->width = rows_.columns;
      rows->finish();
    }
    rows_.first.width = rows_.columns;
    if (labels_ == Labels::unused) return;
    if (classes_.size() < 2) refuse(source_, "all rows to learn from have one label", "there is nothing to tell apart");
    rows_.classes.assign(classes_.begin(), classes_.end());
    for (const double label : tested_) {
      if (!classes_.contains(label)) refuse(source_, "label " + std::to_string(label) + " is only on rows that are held out", "nobody can learn it");
    }
    for (std::vector<double>* labels : {&rows_.own.labels, &rows_.own_held_out.labels, &rows_.first.labels}) {
      for (double& label : *labels) {
        label = static_cast<double>(std::lower_bound(rows_.classes.begin(), rows_.classes.end(), label) - rows_.classes.begin());
      }
    }
  }

 private:
  void take(const data::SparseRow& row, bool test_files) {
    const data::Share share{rows_.member, rows_.members};
    digest_.add_words(std::as_bytes(std::span(&row.label, 1)));
    digest_.add_words(std::as_bytes(row.columns));
    digest_.add_words(std::as_bytes(row.values));
    if (test_files || (source_.test_files.empty() && held_out(source_.seed, seen_++, source_.test_share))) {
      if (labels_ == Labels::classes) tested_.insert(row.label);
      if (share.holds(rows_.held_out++)) rows_.own_held_out.append(row);
      return;
    }
    if (rows_.count == std::numeric_limits<std::uint32_t>::max()) refuse(source_, "has more than 4,294,967,294 rows", "");
    for (const float value : row.values) rows_.largest = std::max(rows_.largest, std::abs(value));
    if (labels_ == Labels::classes) classes_.insert(row.label);
    if (classes_.size() > kMostClasses) {
      refuse(source_, "has more than " + std::to_string(kMostClasses) + " different labels", "a label is a class here, not a value");
    }
    if (rows_.first.size() < kFirst) rows_.first.append(row);
    if (share.holds(rows_.count)) {
      rows_.own.append(row);
      rows_.numbers.push_back(rows_.count);
    }
    ++rows_.count;
  }

  LabelledRows& rows_;
  const Source& source_;
  const Labels labels_;
  std::set<double> classes_, tested_;
  std::uint64_t seen_ = 0;
  Fnv1a digest_;
};

}  // namespace

LabelledRows read_labelled_rows(const Source& source, std::uint32_t member, std::uint32_t members, Labels labels) {
  LabelledRows rows;
  rows.member = member;
  rows.members = members;
  RowDealer dealer(rows, source, labels);
  dealer.read(source.files, false);
  if (!source.test_files.empty()) dealer.read(source.test_files, true);
  dealer.finish();
  return rows;
}

LabelledRows deal_rows(const data::SparseRows& all, std::uint32_t member, std::uint32_t members, Labels labels) {
  LabelledRows rows;
  rows.member = member;
  rows.members = members;
  const Source source{.files = {}, .test_files = {}, .test_share = 0};
  RowDealer dealer(rows, source, labels);
  dealer.take(all, false);
  dealer.finish();
  return rows;
}

}  // namespace shoal::learn
