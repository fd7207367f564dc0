// What people see of the output of N members: whole lines, each behind its rank.
//
// Bytes come in as members write them; a line is shown when it is complete. A line that its member redraws
// with a carriage return (a progress bar) lives at the bottom of a terminal, below everybody's other lines,
// and the lowest rank that has one wins; elsewhere only its last state is shown. A partial line is held, at
// most 64 KB of it. Threads: one.
#pragma once

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace shoal::app {

class Console {
 public:
  enum Stream { out, err };
  struct Screen {
    bool terminal = false;
    bool colour = false;
    unsigned columns = 80;
    std::function<void(std::string_view)> write;
  };
  enum class Show {
    every_rank,  // behind a prefix
    rank_0,      // as it is; of the others only err, behind a prefix
    one_speaks,  // the same, but out is as it is whosever it is: members see to it that one of them says something, whichever are left
  };

  Console(unsigned members, std::array<Screen, 2> screens, Show show);

  void resize(unsigned members);  // what was said of ranks beyond it is forgotten
  void take(unsigned rank, Stream stream, std::string_view bytes);
  void finish(unsigned rank, Stream stream);  // the end of a stream: shows what is left of a line
  void say(std::string_view line);            // the launcher's own, to err

  // The last line of a member's err that was not blank; empty if there was none.
  const std::string& last_error(unsigned rank) const { return last_error_[rank]; }

 private:
  struct Line {
    std::string text;
    bool returned = false;  // the last byte was a carriage return: the next one overwrites text
    bool redrawn = false;   // text overwrote an earlier state of the same line
    bool live() const { return (returned || redrawn) && !text.empty(); }
  };
  Line& line(unsigned rank, Stream stream) { return lines_[rank * 2 + stream]; }
  std::string prefix(unsigned rank, Stream stream) const;
  void complete(unsigned rank, Stream stream);
  void print(Stream stream, std::string_view text);
  void redraw();
  void erase();
  void flush();

  std::array<Screen, 2> screens_;
  Show show_;
  std::vector<Line> lines_;
  std::vector<std::string> last_error_;
  std::array<std::string, 2> pending_;  // to be written by flush()
  bool drawn_ = false;                  // a live line is on the terminal
  Stream drawn_on_ = out;
  std::string drawn_text_;
};

}  // namespace shoal::app
