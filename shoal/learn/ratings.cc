#include "shoal/learn/ratings.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <system_error>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "shoal/data/matrix_market.h"
#include "shoal/learn/order.h"

namespace shoal::learn {
namespace {

constexpr std::size_t kTriplesTogether = 1 << 16;  // triples that are looked at together

bool is_matrix_market(const std::filesystem::path& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return false;  // what is looked at in a pipe is gone
  data::Lines lines({file});
  std::string_view first;
  return lines.next(first) && first.starts_with("%%MatrixMarket");
}

// Calls take(batch) until the files end. `batch` keeps the names.
data::Read each_batch(const std::vector<std::filesystem::path>& files, bool skip_faulty, data::Triples& batch, const std::function<void()>& take) {
  const data::ReadOptions options{.share = {}, .skip_faulty = skip_faulty};
  if (!files.empty() && is_matrix_market(files.front())) {
    if (files.size() > 1) {
      throw Error(Code::invalid_argument, "a matrix is one file, and " + std::to_string(files.size()) + " are given", files.front().string());
    }
    data::MatrixMarketReader reader(files.front(), options);
    while (reader.next(batch, kTriplesTogether)) take();
    return reader.read();
  }
  data::TripleReader reader(files, options);
  while (reader.next(batch, kTriplesTogether)) take();
  return reader.read();
}

class RatingDealer {
 public:
  RatingDealer(Ratings& ratings, const Source& source) : ratings_(ratings), source_(source), dealt_(ratings.members) {
    if (source.rows_in.empty()) return;
    ratings.own = data::TripleStore::in(source.rows_in);
    ratings.own_held_out = data::TripleStore::in(source.rows_in);
  }

  void deal(const data::Triples& batch, bool test_file) {
    ratings_.users = std::max(ratings_.users, batch.row_count);
    ratings_.items = std::max(ratings_.items, batch.column_count);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const std::uint32_t user = batch.rows[i], item = batch.columns[i];
      const float value = batch.values[i];
      const std::uint32_t numbers[] = {user, item, std::bit_cast<std::uint32_t>(value)};
      digest_.add_words(std::as_bytes(std::span(numbers)));
      ratings_.least = std::min(ratings_.least, value);
      const bool tested = test_file || (source_.test_files.empty() && held_out(source_.seed, seen_++, source_.test_share));
      if (tested) {
        ++ratings_.held_out;
      } else {
        ++ratings_.count;
        sum_ += value;
        ++dealt_[user % ratings_.members];
      }
      if (user % ratings_.members == ratings_.member) {
        (tested ? ratings_.own_held_out : ratings_.own).append(user / ratings_.members, item, value);
      }
    }
  }
  void finish(data::Triples& batch) {
    ratings_.own.finish();
    ratings_.own_held_out.finish();
    ratings_.user_names = std::move(batch.row_names);
    ratings_.item_names = std::move(batch.column_names);
    if (ratings_.count == 0) {
      throw Error(Code::invalid_argument, "all ratings are held out, nothing is left to learn from", source_.files.empty() ? "data" : source_.files.front().string(), "a smaller test share, or more data");
    }
    ratings_.most = *std::max_element(dealt_.begin(), dealt_.end());
    ratings_.mean = sum_ / static_cast<double>(ratings_.count);
    ratings_.digest = digest_.value();
  }

 private:
  Ratings& ratings_;
  const Source& source_;
  std::vector<std::uint64_t> dealt_;  // ratings to learn from, by member
  std::uint64_t seen_ = 0;
  double sum_ = 0;
  Fnv1a digest_;
};

}  // namespace

Ratings read_ratings(const Source& source, std::uint32_t member, std::uint32_t members) {
  Ratings ratings;
  ratings.member = member;
  ratings.members = members;
  ratings.least = std::numeric_limits<float>::max();
  RatingDealer dealer(ratings, source);
  data::Triples batch;
  ratings.read.push_back(each_batch(source.files, source.skip_faulty, batch, [&] { dealer.deal(batch, false); }));
  if (!source.test_files.empty()) {
    if (is_matrix_market(source.test_files.front()) != is_matrix_market(source.files.front())) {
      throw Error(Code::invalid_argument, "has rows and columns by number, or by name, where the ratings to learn from have the other", source.test_files.front().string(),
                  "both are matrices, or both are triples");
    }
    ratings.read.push_back(each_batch(source.test_files, source.skip_faulty, batch, [&] { dealer.deal(batch, true); }));
  }
  dealer.finish(batch);
  return ratings;
}

Ratings deal_ratings(data::Triples all, std::uint32_t member, std::uint32_t members) {
  Ratings ratings;
  ratings.member = member;
  ratings.members = members;
  ratings.least = std::numeric_limits<float>::max();
  const Source source{.files = {}, .test_files = {}, .test_share = 0};
  RatingDealer dealer(ratings, source);
  dealer.deal(all, false);
  dealer.finish(all);
  return ratings;
}

std::pair<data::Triples, data::Read> read_all_ratings(const std::vector<std::filesystem::path>& files, bool skip_faulty) {
  data::Triples all, batch;
  data::Read read = each_batch(files, skip_faulty, batch, [&] { all.append(batch.slice(0, batch.size())); });
  all.row_count = batch.row_count;
  all.column_count = batch.column_count;
  all.row_names = std::move(batch.row_names);
  all.column_names = std::move(batch.column_names);
  return {std::move(all), std::move(read)};
}

}  // namespace shoal::learn
