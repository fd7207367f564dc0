// What all readers of samples share: whose samples are whose, what is wrong with a line, and what was read, as a value and as a sentence.
// Values; threads: one at a time.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "shoal/data/lines.h"

namespace shoal::data {

// The samples of one of `members`, dealt in turns: each round of `members` samples has one for everybody, so that nobody has more than one sample
// more than another. Who is first moves on by one each round: data in which every n-th sample is of one class is dealt evenly too.
// Members that are to have unequal shares have as many turns of a round as they are to have of its samples.
// Every member reads all lines and keeps its share, so all agree on columns, names and faults without a word.
struct Share {
  std::uint32_t member = 0, members = 1;
  std::vector<std::uint32_t> turns = {};  // whose each turn of a round is, where shares are unequal; none: one for each
  std::uint32_t owner(std::uint64_t sample) const {
    const std::uint64_t round = turns.empty() ? members : turns.size(), turn = round == 1 ? 0 : (sample + sample / round) % round;
    return turns.empty() ? static_cast<std::uint32_t>(turn) : turns[turn];
  }
  bool holds(std::uint64_t sample) const { return owner(sample) == member; }
};

enum class Reason : std::uint8_t { number, not_finite, range, order, fields };
inline constexpr std::size_t kReasons = 5;
const char* name(Reason reason);  // "no number"

// Why a line cannot be read, and what to do. Its place is added by who knows it.
struct Fault {
  Reason reason;
  std::string what, hint;
};

// What a parser makes of a line: a sample, nothing (blank, a comment), or a fault. Then nothing of the line was kept.
struct Verdict {
  bool sample = false;
  bool query = false;  // it had a "qid:", which was left out
  std::unique_ptr<Fault> fault = nullptr;  // seldom there: a pointer keeps the verdict of every other line short

  static Verdict refused(Fault why) {
    Verdict verdict;
    verdict.fault = std::make_unique<Fault>(std::move(why));
    return verdict;
  }
};

struct ReadOptions {
  Share share = {};
  bool skip_faulty = false;  // leave out lines with a fault and count them; otherwise the first ends the reading
};

struct Read {
  std::vector<std::filesystem::path> files;
  std::string form;               // what the first lines told: "fields between ','"; empty where the format leaves nothing open
  std::uint64_t lines = 0;        // of all files
  std::uint64_t samples = 0;      // of all members
  std::uint64_t kept = 0;         // this member's
  std::uint64_t rows = 0;         // different ones; 0 where a row is a sample
  std::uint64_t columns = 0, values = 0;  // of all members
  std::uint64_t queries = 0;      // "qid:" left out
  std::array<std::uint64_t, kReasons> dropped = {};  // lines, by Reason
  std::string first_dropped;      // "file:line: what"

  std::uint64_t skipped() const;  // the sum of dropped
};

// What people call samples, rows and columns of their data.
struct Nouns {
  std::string_view samples = "samples", rows = "rows", columns = "columns";
};

// "read 1,000,209 ratings of 6,040 users and 3,706 items from ratings.dat; 0 lines skipped".
std::string sentence(const Read& read, const Nouns& nouns = {});

// The lines of the files as the readers take them: counted, dealt, and faults put into their place.
class Intake {
 public:
  // Throws Error{invalid_argument} for no files, and for a member that is none of `members`.
  Intake(std::vector<std::filesystem::path> files, const ReadOptions& options);

  bool next(std::string_view& line);  // as Lines::next
  // Counts a line by its verdict. True for a sample of this member's. Throws the fault as Error{invalid_argument} unless faulty lines are left out.
  bool keeps(const Verdict& verdict);
  void require_samples() const;  // throws Error{invalid_argument} where there was none

  Lines lines;
  Read read;

 private:
  ReadOptions options_;
};

}  // namespace shoal::data
