// How events lie in files: JSON, one line each, after a header line that says whose they are.
//
//   events-2.jsonl (one member, its own steady clock)      events.jsonl (all members, from the run's begin)
//     {"shoal_events":1,"rank":2,"size":4,"host":...}        {"shoal_events":1,"unix_begin_ns":...,"ranks":[...]}
//     {"kind":"sent","begin":..,"end":..,"peer":1,...}       {"rank":2,"kind":"sent",...}
//
// Times are nanoseconds. What has its default (step -1, peer -1, value 0, no name, end = begin) is left out.
// Pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "shoal/core/event.h"

namespace shoal::observe {

// One member, and how its steady clock relates to everybody's.
struct Author {
  int rank = 0;
  int size = 1;
  std::string host;
  std::string boot;                          // equal on members that share one steady clock: the kernel's boot id
  std::int64_t pid = 0;
  std::int64_t unix_minus_steady_ns = 0;     // at the start of the file
};

struct FileHeader {
  std::vector<Author> authors;   // one, or all of a merged file
  bool merged = false;
  std::int64_t unix_begin_ns = 0;  // of a merged file: where its times start
  std::vector<std::string> remarks;  // of a merged file: what was missing when it was made
};

std::string to_line(const FileHeader& header);
// `rank` -1: not written.
void append_line(std::string& text, const Event& event, std::string_view name, int rank = -1);

struct ParsedLine {
  Event event{};
  std::string name;
  int rank = -1;
};

// False: not such a line.
bool parse_header(std::string_view line, FileHeader& header);
bool parse_line(std::string_view line, ParsedLine& parsed);

}  // namespace shoal::observe
