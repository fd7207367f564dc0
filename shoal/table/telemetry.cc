#include "shoal/table/telemetry.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cmath>
#include <numeric>
#include <span>

#include "shoal/core/text.h"

namespace shoal::table {

const char* name(Cause cause) {
  switch (cause) {
    case Cause::gate: return "the slowest";
    case Cause::fetch: return "rows";
    case Cause::back_pressure: return "servers to catch up";
    case Cause::bound: return "a bound on values";
    default: return "barriers";
  }
}

const char* word(Cause cause) {
  switch (cause) {
    case Cause::gate: return "gate";
    case Cause::fetch: return "fetch";
    case Cause::back_pressure: return "back-pressure";
    case Cause::bound: return "bound";
    default: return "barrier";
  }
}

void Telemetry::read(Clock age, Clock clock, Nanoseconds since_told) {
  const Clock late = age == kNever ? static_cast<Clock>(kBins) : std::max<Clock>(0, clock - age);
  ++behind[static_cast<std::size_t>(std::min<Clock>(late, kBins - 1))];
  const auto microseconds = std::chrono::duration_cast<std::chrono::microseconds>(since_told).count();
  ++old[std::min(static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(0, microseconds)))), kSpans - 1)];
}

void Telemetry::wait(Cause cause, Nanoseconds time) {
  if (time <= Nanoseconds::zero()) return;
  waited[static_cast<std::size_t>(cause)] += Seconds(time).count();
  ++waits[static_cast<std::size_t>(cause)];
}

void Telemetry::said(const Message& message) {
  const std::size_t size = sizeof(Header) + message.body.size();
  const Kind kind = message.header.kind;
  (kind == Kind::update ? bytes.added : kind == Kind::request || kind == Kind::unsubscribe ? bytes.asked : bytes.other) += size;
}

void Telemetry::heard(const Message& message) {
  const bool has_rows = message.header.kind == Kind::rows || message.header.kind == Kind::changes;
  (has_rows ? bytes.rows : bytes.told) += sizeof(Header) + message.body.size();
}

void Telemetry::servers(const ServerBytes& moved) {
  bytes.given = moved.given;
  bytes.taken = moved.taken;
  bytes.saved = moved.saved;
}

double Telemetry::seconds_old(double share) const {
  const double most = share * static_cast<double>(rows_read());
  std::uint64_t so_far = 0;
  std::size_t span = 0;
  while (span + 1 < kSpans && static_cast<double>(so_far += old[span]) < most) ++span;
  return seconds_below(span);
}

std::uint64_t Telemetry::rows_read() const { return std::accumulate(behind.begin(), behind.end(), std::uint64_t{0}); }

namespace {

// A bar for each of these, as high as its share of the largest; what is there at all is seen.
std::string bars(std::span<const std::uint64_t> counts) {
  static constexpr const char* kHeights[] = {"\u00b7", "\u2581", "\u2582", "\u2583", "\u2584", "\u2585", "\u2586", "\u2587", "\u2588"};
  const std::uint64_t largest = std::ranges::max(counts);
  std::string text;
  for (const std::uint64_t count : counts) {
    const double height = 8 * static_cast<double>(count) / static_cast<double>(largest);
    text += kHeights[count == 0 ? 0 : std::max(1, static_cast<int>(std::lround(height)))];
  }
  return text;
}

}  // namespace

std::string Telemetry::line(const std::string& table) const {
  const std::uint64_t rows = rows_read();
  if (rows == 0 && bytes.added + bytes.given + bytes.taken + bytes.saved == 0) return "";
  std::string text = "table " + table + ": " + std::to_string(rows) + " rows read";
  if (rows > 0) {
    double sum = 0;
    std::size_t worst = 0;
    for (std::size_t bin = 0; bin < kBins; ++bin) {
      sum += static_cast<double>(bin) * static_cast<double>(behind[bin]);
      if (behind[bin] > 0) worst = bin;
    }
    const std::string mean = std::to_string(sum / static_cast<double>(rows));
    text += ", " + mean.substr(0, mean.find('.') + 3) + " clocks behind in the mean, " + std::to_string(worst) + " at most";
    if (worst > 0) text += ": " + bars(std::span(behind).first(worst + 1));
    text += "; half were vouched for less than " + show_seconds(seconds_old(0.5)) + " before, 99 of 100 less than " + show_seconds(seconds_old(0.99));
    const auto is_there = [](std::uint64_t count) { return count > 0; };
    const auto youngest = std::ranges::find_if(old, is_there) - old.begin(), end = std::ranges::find_if(old.rbegin(), old.rend(), is_there).base() - old.begin();
    text += ": " + bars(std::span(old).subspan(youngest, end - youngest)) + " from " + show_seconds(seconds_below(youngest)) + " by twos";
  }
  for (std::size_t cause = 0; cause < kCauses; ++cause) {
    if (waited[cause] > 0) text += "; waited " + show_seconds(waited[cause]) + " for " + name(static_cast<Cause>(cause));
  }
  const auto mega = [](std::uint64_t count) {
    const std::string number = std::to_string(static_cast<double>(count) / 1e6);
    return number.substr(0, number.find('.') + 2) + " MB";
  };
  text += "; said " + mega(bytes.added + bytes.asked + bytes.other) + " (" + mega(bytes.added) + " of it increments), heard " + mega(bytes.rows + bytes.told);
  if (unsubscribed > 0) text += "; " + std::to_string(unsubscribed) + " rows unsubscribed";
  if (dropped > 0) text += "; clocks of this member that came too late: " + std::to_string(dropped);
  if (bytes.saved > 0) text += "; wrote " + mega(bytes.saved) + " to snapshots";
  if (bytes.given + bytes.taken > 0) text += "; handed " + mega(bytes.given) + " of rows to other members, and took over " + mega(bytes.taken);
  return text;
}

}  // namespace shoal::table
