#include "app/console.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace shoal::app {
namespace {

constexpr std::size_t longest_line = 64 * 1024;
constexpr std::string_view clear_line = "\r\x1b[K";
constexpr std::string_view plain = "\x1b[0m";
constexpr int rank_colours[] = {36, 33, 32, 35, 34, 31};

bool blank(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c == ' ' || c == '\t'; });
}

// The longest beginning of `text` that fills at most `columns` cells; colour sequences fill none.
std::string_view fit(std::string_view text, unsigned columns) {
  unsigned cells = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80 && ++cells > columns) {
      return text.substr(0, i);
    }
  }
  return text;
}

}  // namespace

Console::Console(unsigned members, std::array<Screen, 2> screens, Show show)
    : screens_(std::move(screens)), show_(show), lines_(members * 2), last_error_(members) {}

void Console::resize(unsigned members) {
  lines_.resize(std::size_t{members} * 2);
  last_error_.resize(members);
}

void Console::take(unsigned rank, Stream stream, std::string_view bytes) {
  Line& at = line(rank, stream);
  while (!bytes.empty()) {
    if (at.returned && bytes.front() != '\n') {
      at.returned = false;
      at.redrawn = true;
      at.text.clear();
    }
    const auto end = bytes.find_first_of("\r\n");
    at.text += bytes.substr(0, end);
    if (at.text.size() > longest_line) complete(rank, stream);
    if (end == std::string_view::npos) break;
    if (bytes[end] == '\n') {
      complete(rank, stream);
    } else {
      at.returned = true;
    }
    bytes.remove_prefix(end + 1);
  }
  redraw();
  flush();
}

void Console::finish(unsigned rank, Stream stream) {
  if (!line(rank, stream).text.empty()) complete(rank, stream);
  redraw();
  flush();
}

void Console::say(std::string_view text) {
  print(err, std::string(text) + "\n");
  redraw();
  flush();
}

std::string Console::prefix(unsigned rank, Stream stream) const {
  if (show_ != Show::every_rank && (rank == 0 || stream == out)) return {};
  if (!screens_[stream].colour) return fmt::format("[{}] ", rank);
  const int colour = rank_colours[rank % std::size(rank_colours)];
  return fmt::format("\x1b[{}m[{}]{} ", colour, rank, plain);
}

void Console::complete(unsigned rank, Stream stream) {
  Line finished = std::exchange(line(rank, stream), Line{});
  if (stream == err && !blank(finished.text)) last_error_[rank] = finished.text;
  if (show_ == Show::rank_0 && rank != 0 && stream == out) return;
  print(stream, prefix(rank, stream) + finished.text + "\n");
}

void Console::print(Stream stream, std::string_view text) {
  if (screens_[stream].terminal) erase();
  pending_[stream] += text;
}

void Console::redraw() {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const auto rank = static_cast<unsigned>(i / 2);
    const auto stream = static_cast<Stream>(i % 2);
    if (!lines_[i].live() || !screens_[stream].terminal || (show_ == Show::rank_0 && rank != 0)) continue;
    std::string wanted(fit(prefix(rank, stream) + lines_[i].text, screens_[stream].columns - 1));
    if (screens_[stream].colour) wanted += plain;
    if (drawn_ && drawn_on_ == stream && drawn_text_ == wanted) return;
    erase();
    pending_[stream] += wanted;
    drawn_ = true;
    drawn_on_ = stream;
    drawn_text_ = std::move(wanted);
    return;
  }
  erase();
}

void Console::erase() {
  if (!drawn_) return;
  pending_[drawn_on_] += clear_line;
  drawn_ = false;
  // Both streams may be the same terminal: what was drawn on one is cleared before the other goes on.
  flush();
}

void Console::flush() {
  for (auto stream : {out, err}) {
    if (!pending_[stream].empty()) screens_[stream].write(std::exchange(pending_[stream], {}));
  }
}

}  // namespace shoal::app
