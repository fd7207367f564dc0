#include "shoal/table/added.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "shoal/table/finite.h"

namespace shoal::table {

template <class T>
Added<T>::Added(std::size_t width, Encoding encoding, const Placement& placement, std::uint32_t workers, std::shared_ptr<const BytesPool> bodies)
    : width_(width), placement_(placement), bodies_(encoding == Encoding::none ? std::move(bodies) : BytesPool::of_process()), open_(workers), ways_(placement.shards()) {
  for (std::uint32_t worker = 0; worker < workers; ++worker) left_out_.emplace_back(encoding, width);
  for (auto& open : open_) {
    for (std::size_t shard = 0; shard < placement.shards(); ++shard) open.push_back(opened());
  }
}

namespace {

// Rows one below the other: those that are new at once, the others one by one. Returns the number of the last.
template <class T>
typename RowMap<T>::Number add_all(RowMap<T>& rows, std::span<const Key> keys, std::span<const T> values, typename RowMap<T>::Number last) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (const std::size_t taken = rows.append(keys.subspan(i), values.subspan(i * rows.width())); taken > 0) {
      i += taken;
      last = static_cast<typename RowMap<T>::Number>(rows.size() - 1);
    }
    if (i < keys.size()) last = rows.add(keys[i], last + 1, values.subspan(i * rows.width(), rows.width()));
  }
  return last;
}

}  // namespace

// Narrow rows are first sorted by their shards, some at a time, so that those of each come together; a wide one is worth a look at its shard.
template <class T>
void Added<T>::add(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values) {
  constexpr std::size_t kSome = 4096, kNarrow = 64;  // rows; bytes
  std::vector<Open>& open = open_[worker];
  std::vector<typename Rows::Number> last(open.size(), Rows::kNone);  // by shard
  if (open.size() == 1) return void(add_all<T>(open[0].rows, keys, values, Rows::kNone));
  if (width_ * sizeof(T) > kNarrow) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const std::size_t shard = placement_.shard_of(keys[i]);
      last[shard] = open[shard].rows.add(keys[i], last[shard] + 1, values.subspan(i * width_, width_));
    }
    return;
  }
  std::vector<std::uint32_t> shards(std::min(kSome, keys.size()));
  std::vector<Key> sorted(shards.size());
  std::vector<T> with(shards.size() * width_);
  std::vector<std::size_t> ends(open.size());
  for (std::size_t begin = 0; begin < keys.size(); begin += kSome) {
    const std::size_t count = std::min(kSome, keys.size() - begin);
    std::ranges::fill(ends, 0);
    for (std::size_t i = 0; i < count; ++i) ++ends[shards[i] = static_cast<std::uint32_t>(placement_.shard_of(keys[begin + i]))];
    std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), std::size_t{0});
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t at = ends[shards[i]]++;
      sorted[at] = keys[begin + i];
      set<T>({with.data() + at * width_, width_}, values.subspan((begin + i) * width_, width_));
    }
    for (std::size_t shard = 0, first = 0; shard < open.size(); first = ends[shard++]) {
      const std::size_t some = ends[shard] - first;
      last[shard] = add_all<T>(open[shard].rows, std::span<const Key>(sorted).subspan(first, some), std::span<const T>(with).subspan(first * width_, some * width_), last[shard]);
    }
  }
}

template <class T>
bool Added<T>::add_if_finite(std::uint32_t worker, std::span<const Key> keys, std::span<const T> values) {
  std::vector<Open>& open = open_[worker];
  bool all = true;
  if (width_ * sizeof(T) > kPieceBytes) {
    for (std::size_t i = 0; i < keys.size() && all; ++i) {
      const std::span<const T> row = values.subspan(i * width_, width_);
      bool is_new = false;
      open[placement_.shard_of(keys[i])].rows.add(keys[i], Rows::kNone, row, [&](std::span<T> into, std::span<const T> from) {
        is_new = true;
        all = set_finite(into, from);
      });
      all = all && (is_new || finite(row));
    }
  } else {
    const std::size_t rows = kPieceBytes / (width_ * sizeof(T));
    for (std::size_t begin = 0; begin < keys.size() && all; begin += rows) {
      const std::size_t count = std::min(rows, keys.size() - begin);
      const std::span<const T> some = values.subspan(begin * width_, count * width_);
      all = finite(some);
      add(worker, keys.subspan(begin, count), some);
    }
  }
  if (!all) {
    for (Open& of_shard : open) of_shard = opened();
  }
  return all;
}

template <class T>
std::vector<Message> Added<T>::leave(std::uint32_t worker, std::size_t shard, Clock clock, bool keep) {
  Open& open = open_[worker][shard];
  const std::size_t usual = open.rows.size();
  Rows rows = std::exchange(open, opened(usual)).rows;
  const std::size_t rounded = left_out_[worker].rounds() ? rows.size() : 0;
  for (typename Rows::Number number = 0; number < rounded; ++number) left_out_[worker].round(rows.key(number), rows.row(number));
  auto bodies = rows.bodies();
  if (bodies.empty()) bodies.emplace_back();     // a part without rows still closes the clock there
  ways_[shard].last = ++sequence_;
  std::vector<Message> messages;
  for (auto& body : bodies) {
    Message& message = messages.emplace_back();
    message.header.length = static_cast<std::uint32_t>(body.bytes.size());
    message.header.kind = Kind::update;
    message.header.sequence = sequence_;
    message.header.clock = clock;
    message.header.count = static_cast<std::uint32_t>(body.rows);
    message.body = std::move(body.bytes);
  }
  if (rows.size() > 0 && keep) ways_[shard].kept.push_back({worker, clock, sequence_, std::move(rows)});
  return messages;
}

template <class T>
std::vector<const Part<T>*> Added<T>::counted(std::size_t shard, Clock clock, std::uint64_t sequence) const {
  std::vector<const Part<T>*> counted;
  for (const Part<T>& part : ways_[shard].kept) {
    if (part.is_within(clock, sequence)) counted.push_back(&part);
  }
  std::ranges::stable_sort(counted, {}, [](const Part<T>* part) { return std::pair(part->clock, part->worker); });
  return counted;
}

template class Added<float>;
template class Added<double>;
template class Added<std::int32_t>;
template class Added<std::int64_t>;

}  // namespace shoal::table
