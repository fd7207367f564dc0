#include "shoal/table/order.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "shoal/core/error.h"
#include "shoal/core/fnv.h"
#include "shoal/core/varint.h"

namespace shoal::table {
namespace {

constexpr std::size_t kWindow = std::size_t{1} << 18;  // bytes of a file that are mapped, and room for on the disk, at a time

std::string reason(int error) { return std::generic_category().message(error); }

}  // namespace

OrderKept OrderKept::from_environment() {
  const char *const record = std::getenv("SHOAL_RECORD"), *const replay = std::getenv("SHOAL_REPLAY");
  const bool records = record && *record, replays = replay && *replay;
  if (records && replays) throw Error(Code::invalid_argument, "a run is either recorded or a replay", "SHOAL_RECORD and SHOAL_REPLAY", "unset one");
  if (records) return {How::record, record};
  if (replays) return {How::replay, replay};
  return {};
}

Order::Order(const OrderKept& kept, const std::string& file, const std::string& whose)
    : replays_(kept.how == OrderKept::How::replay), file_(kept.folder / file) {
  const std::string line = whose + "\n";
  if (!replays_) {
    std::error_code none;
    std::filesystem::create_directories(kept.folder, none);
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor_ < 0 && errno == EEXIST) fail(Code::invalid_argument, "is there already", "record into another folder");
    if (descriptor_ < 0) fail(Code::invalid_argument, "cannot be written: " + reason(errno), "record into another folder");
    for (const char c : line) put_byte(static_cast<std::byte>(c));
    return;
  }
  descriptor_ = ::open(file_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    fail(Code::invalid_argument, "cannot be read: " + reason(errno), "replay with the members and tables that were recorded");
  }
  struct stat of_file{};
  ::fstat(descriptor_, &of_file);
  const auto size = static_cast<std::size_t>(of_file.st_size);
  if (size > 0) map(0, size);
  const std::string_view all(reinterpret_cast<const char*>(window_.data()), window_.size());
  const std::string_view there = all.substr(0, std::min(all.find('\n'), std::size_t{100'000}));
  if (there != whose) {
    fail(Code::invalid_argument, "is of \"" + std::string(there) + "\", and this run has \"" + whose + "\"", "replay what was recorded");
  }
  at_ = line.size();
}

Order::~Order() {
  if (!window_.empty()) ::munmap(window_.data(), window_.size());
  if (descriptor_ < 0) return;
  if (!replays_ && ::ftruncate(descriptor_, static_cast<off_t>(begin_ + at_)) != 0) at_ = 0;  // zeros behind it say the same
  ::close(descriptor_);
}

void Order::map(std::size_t begin, std::size_t size) {
  if (!window_.empty()) ::munmap(window_.data(), window_.size());
  window_ = {};
  void* const mapped = ::mmap(nullptr, size, replays_ ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, static_cast<off_t>(begin));
  if (mapped == MAP_FAILED) fail(Code::io, "cannot be mapped: " + reason(errno));
  window_ = {static_cast<std::byte*>(mapped), size};
  begin_ = begin;
  at_ = 0;
}

void Order::put_byte(std::byte byte) {
  if (at_ == window_.size()) {
    const std::size_t begin = begin_ + window_.size();
    if (const int error = ::posix_fallocate(descriptor_, static_cast<off_t>(begin), kWindow); error != 0) {
      fail(Code::io, "no room for the record: " + reason(error), "record into a folder on another disk");
    }
    map(begin, kWindow);
  }
  window_[at_++] = byte;
}

void Order::put(std::uint64_t number) {
  std::byte bytes[kLongestVarint];
  for (const std::byte* byte = bytes; byte != put_varint(bytes, number); ++byte) put_byte(*byte);
}

std::uint64_t Order::take() {
  std::span<const std::byte> rest = window_.subspan(std::min(at_, window_.size()));
  const std::size_t before = rest.size();
  const auto number = take_varint(rest);
  at_ += number ? before - rest.size() : before;  // what ends within a number was being written
  return number.value_or(0);
}

std::optional<Order::Event> Order::next() const {
  if (!replays_ || over_) return std::nullopt;
  std::span<const std::byte> rest = window_.subspan(std::min(at_, window_.size()));
  const auto source = take_varint(rest);
  if (!source || *source == 0 || rest.empty()) return std::nullopt;
  return Event{static_cast<Source>(*source - 1), std::to_integer<std::uint8_t>(rest.front())};
}

void Order::happens(Event event) {
  ++events_;
  if (!replays_) {
    put(event.source + std::uint64_t{1});
    return put_byte(static_cast<std::byte>(event.print));
  }
  const auto told = next();
  // Behind its end, also where the file of a process that was killed has zeros, or the half of an event and then zeros.
  const auto half = [&] {
    std::span<const std::byte> rest = window_.subspan(std::min(at_, window_.size()));
    take_varint(rest);
    return std::ranges::all_of(rest, [](std::byte b) { return b == std::byte{0}; });
  };
  if (!told || (*told != event && half())) {
    over_ = true;
    return;
  }
  if (*told != event) {
    fail(Code::mismatch, "event " + std::to_string(events_) + " of the recorded run was another one",
         "replay the same program with the same data, options and seed");
  }
  take();
  ++at_;
}

std::uint64_t Order::answer(std::uint64_t here) {
  if (!replays_) {
    put(here);
    return here;
  }
  return !over_ && at_ < window_.size() ? take() : here;
}

Instant Order::now(Instant here) {
  const auto since = std::chrono::duration_cast<std::chrono::microseconds>(std::max(here, here_) - here_);
  here_ += since;
  return now_ += std::chrono::microseconds(answer(static_cast<std::uint64_t>(since.count())));
}

void Order::fail(Code code, const std::string& what, const std::string& hint) const { throw Error(code, what, file_.string(), hint); }

// Of its header what is no count over several tables; of rows the end of the last.
std::uint8_t print_of(const Message& message) {
  const Header& header = message.header;
  Fnv1a digest;
  for (const std::uint64_t field : {std::uint64_t{header.length}, static_cast<std::uint64_t>(header.kind), static_cast<std::uint64_t>(header.ends),
                                    static_cast<std::uint64_t>(header.clock), std::uint64_t{header.worker}, std::uint64_t{header.count}}) {
    digest.add_words(std::as_bytes(std::span(&field, 1)));
  }
  constexpr std::size_t some = 64;
  const bool has_rows = header.kind == Kind::update || header.kind == Kind::rows || header.kind == Kind::changes || header.kind == Kind::assign;
  const std::size_t size = has_rows ? message.body.size() : 0;
  digest.add_words(std::span<const std::byte>(message.body.data(), size).last(std::min(size, some)));
  const std::uint64_t value = digest.value();
  return static_cast<std::uint8_t>(value ^ value >> 32);
}

InOrder::InOrder(Order& order, std::function<bool(Order::Source source)> unasked) : order_(order), unasked_(std::move(unasked)) {}

void InOrder::comes(Order::Event event, Act act) {
  if (!order_.next() && come_.empty()) {
    order_.happens(event);
    return act();
  }
  come_[event.source].emplace_back(event, std::move(act));
  go_on();
}

void InOrder::go_on() {
  while (const auto next = order_.next()) {
    const auto waiting = come_.find(next->source);
    if (waiting == come_.end()) {
      if (!unasked_(next->source)) return;
      continue;
    }
    const auto [event, act] = std::move(waiting->second.front());
    waiting->second.pop_front();
    if (waiting->second.empty()) come_.erase(waiting);
    order_.happens(event);
    act();
  }
  for (auto rest = std::exchange(come_, {}); const auto& [source, events] : rest) {  // nothing is told any more
    for (const auto& [event, act] : events) act();
  }
}

}  // namespace shoal::table
