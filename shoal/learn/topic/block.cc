#include "shoal/learn/topic/block.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <string>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/learn/topic/likelihood.h"

namespace shoal::learn::topic {
namespace {

// Entries that a document of so many tokens can have: one for each topic, and one for each time that another is full.
std::uint64_t most_entries(std::uint64_t tokens, std::uint32_t topics, unsigned shift) {
  return std::min(tokens, topics + tokens / ((std::uint64_t{1} << shift) - 1));
}

constexpr std::uint32_t kLookedThrough = 16;  // lines of a table whose entries are looked through for each token that is counted

// Where a table with `table[0]` entries behind the first has that topic, or an empty entry for it (open addressing; there are as many places as topics).
std::uint32_t place_of(Topic topic, const std::uint32_t* table, unsigned shift) {
  const std::uint32_t places = table[0];
  auto at = static_cast<std::uint32_t>(std::uint64_t{topic * 0x9E3779B1u} * places >> 32);
  while (table[1 + at] != 0 && table[1 + at] >> shift != topic) at = at + 1 == places ? 0 : at + 1;
  return 1 + at;
}

}  // namespace

// The rest of an entry says a topic, or in the first one how many entries there are.
unsigned Block::shift_for(std::uint64_t longest, std::uint32_t topics) {
  unsigned bits = 32 - static_cast<unsigned>(std::bit_width(topics));
  while (most_entries(longest, topics, bits) >> (32 - bits) != 0) --bits;
  return bits;
}

std::uint64_t Block::lines_for(std::uint64_t tokens, std::uint32_t topics, unsigned shift) {
  return (most_entries(tokens, topics, shift) + 1 + kLine - 1) / kLine;
}

Block::Block(const text::Documents& documents, std::size_t begin, std::size_t end, const Slicing& slicing, std::uint32_t number_of_topics) {
  const std::uint64_t first = documents.offsets[begin], count = documents.offsets[end] - first;
  if (count > UINT32_MAX / 2)
    throw Error(Code::invalid_argument, std::to_string(count) + " tokens are too many for one thread", "", "use more threads or members");
  // Documents of about the same length follow each other, among the tokens of a word too: what is done for one is what was done for the one before
  // it.
  const auto length_of = [&](std::size_t d) { return documents.offsets[d + 1] - documents.offsets[d]; };
  std::vector<std::size_t> order(end - begin);
  std::iota(order.begin(), order.end(), begin);
  std::ranges::stable_sort(order, {}, length_of);
  shift = shift_for(order.empty() ? 0 : length_of(order.back()), number_of_topics);
  first_line.resize(order.size());
  std::uint64_t line = 0;
  for (const std::size_t d : order) {
    const std::uint64_t length = length_of(d);
    if (length > most()) first_long = std::min(first_long, static_cast<std::uint32_t>(line));
    first_line[d - begin] = static_cast<std::uint32_t>(line);
    const std::uint64_t room = lines_for(length, number_of_topics, shift);
    if (is_whole(room, number_of_topics)) first_whole = std::min(first_whole, static_cast<std::uint32_t>(line));
    longest_table = std::max(longest_table, static_cast<std::uint32_t>(room));
    line += room;
  }
  tables = Aligned<std::uint32_t>(line * kLine);

  // By counting: tokens of each word, in the order of slices, then each token to its place.
  const std::span<const std::uint32_t> words = documents.words().subspan(first, count);
  std::vector<std::uint32_t> next(slicing.words.size() + 1);
  for (const std::uint32_t word : words) ++next[slicing.ordinal[word] + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (std::uint32_t slice = 0; slice < slicing.slices(); ++slice) {
    slices.push_back(static_cast<std::uint32_t>(runs.size()));
    for (std::uint32_t i = slicing.begins[slice]; i < slicing.begins[slice + 1]; ++i) {
      if (next[i + 1] > next[i]) runs.push_back({i - slicing.begins[slice], next[i]});
    }
  }
  slices.push_back(static_cast<std::uint32_t>(runs.size()));
  runs.push_back({0, static_cast<std::uint32_t>(count)});
  lines.resize(count);
  positions.resize(count);
  topics.resize(count);
  for (const std::size_t d : order) {
    for (std::uint64_t i = documents.offsets[d] - first; i < documents.offsets[d + 1] - first; ++i) {
      const std::uint32_t token = next[slicing.ordinal[words[i]]]++;
      lines[token] = first_line[d - begin];
      positions[token] = static_cast<std::uint32_t>(i);
    }
  }
}

void Block::count() {
  std::fill_n(tables.data(), tables.size(), 0);
  // No table of very many entries is looked through for each token. A wide one has its entries where a hash says, and until they move together its
  // first one says how much room there is.
  std::vector<std::uint32_t> begins = first_line;
  std::ranges::sort(begins);
  begins.push_back(static_cast<std::uint32_t>(tables.size() / kLine));
  std::uint32_t first_wide = first_long;
  for (std::size_t i = first_line.size(); i-- > 0 && begins[i + 1] - begins[i] > kLookedThrough;) {
    if (begins[i] >= first_long) continue;
    first_wide = begins[i];
    tables[std::size_t{begins[i]} * kLine] = (begins[i + 1] - begins[i]) * kLine - 1;
  }
  std::vector<std::pair<std::uint32_t, Topic>> of_long;  // line and topic
  for (std::uint32_t token = 0; token < tokens(); ++token) {
    const Topic topic = topics[token];
    if (lines[token] >= first_long) {
      of_long.emplace_back(lines[token], topic);
      continue;
    }
    std::uint32_t* const table = tables.data() + std::uint64_t{lines[token]} * kLine;
    if (lines[token] >= first_wide) {
      std::uint32_t& entry = table[place_of(topic, table, shift)];
      entry = (entry == 0 ? topic << shift : entry) + 1;
      continue;
    }
    const std::uint32_t size = table[0] >> shift;
    std::uint32_t at = 1;
    while (at <= size && table[at] >> shift != topic) ++at;
    if (at <= size) {
      ++table[at];
    } else {
      table[at] = topic << shift | 1;
      table[0] = (size + 1) << shift;
    }
  }
  for (const std::uint32_t line : first_line) {
    if (line < first_wide || line >= first_long) continue;
    std::uint32_t* const table = tables.data() + std::size_t{line} * kLine;
    std::uint32_t* const end = table + 1 + table[0];
    std::uint32_t* const used = std::remove(table + 1, end, 0u);
    std::fill(used, end, 0u);
    table[0] = static_cast<std::uint32_t>(used - table - 1) << shift;
  }
  std::ranges::sort(of_long);
  for (std::size_t i = 0; i < of_long.size(); ++i) {
    std::uint32_t* const table = tables.data() + std::uint64_t{of_long[i].first} * kLine;
    std::uint32_t size = table[0] >> shift;
    if (i == 0 || of_long[i] != of_long[i - 1] || (table[size] & most()) == most()) table[++size] = of_long[i].second << shift;
    ++table[size];
    table[0] = size << shift;
  }
}

void Block::add_to(Slice& slice, std::uint32_t number) const {
  TopicCounter counter;
  std::vector<TopicCount> sum;
  const auto of_slice = runs_of(number);
  for (std::size_t i = 0; i + 1 < of_slice.size(); ++i) {
    const auto own = counter(std::span(topics).subspan(of_slice[i].begin, of_slice[i + 1].begin - of_slice[i].begin));
    const auto row = slice.row(of_slice[i].place);
    sum.clear();
    auto at = row.begin();
    for (const auto& [topic, count] : own) {
      for (; at != row.end() && at->topic < topic; ++at) sum.push_back(*at);
      const bool both = at != row.end() && at->topic == topic;
      sum.push_back({topic, count + (both ? (at++)->count : 0)});
    }
    sum.insert(sum.end(), at, row.end());
    slice.store(of_slice[i].place, sum);
  }
}

std::size_t Block::memory() const {
  return runs.size() * sizeof(Run) + (slices.size() + 3 * std::size_t{tokens()} + first_line.size() + tables.size()) * sizeof(std::uint32_t);
}

void Block::counts_of(std::uint32_t document, std::vector<TopicCount>& to) const {
  const std::uint32_t* const table = tables.data() + std::uint64_t{first_line[document]} * kLine;
  to.clear();
  for (std::uint32_t i = 1; i <= table[0] >> shift; ++i) to.push_back({table[i] >> shift, table[i] & most()});
  if (first_line[document] < first_long) return;
  std::ranges::sort(to, {}, &TopicCount::topic);
  std::size_t last = 0;
  for (std::size_t i = 1; i < to.size(); ++i) {
    if (to[i].topic == to[last].topic) {
      to[last].count += to[i].count;
    } else {
      to[++last] = to[i];
    }
  }
  to.resize(last + 1);
}

}  // namespace shoal::learn::topic
