#include "shoal/table/message.h"

#include <cstring>

namespace shoal::table {
namespace {

bool has_values(Kind kind) {
  return kind == Kind::update || kind == Kind::assign || kind == Kind::put || kind == Kind::rows || kind == Kind::fetched || kind == Kind::given_batch ||
         kind == Kind::given_rows;
}
bool has_keys(Kind kind) {
  return has_values(kind) || kind == Kind::request || kind == Kind::unsubscribe || kind == Kind::fetch || kind == Kind::clocks || kind == Kind::last_clocks || kind == Kind::given_state ||
         kind == Kind::kept;
}
bool has_more(Kind kind) { return kind == Kind::call || kind == Kind::called; }  // behind its keys, in numbers of 8 bytes
bool has_changes(Kind kind) { return kind == Kind::changes; }            // behind its keys (changes.h)
bool has_text(Kind kind) {
  return kind == Kind::open || kind == Kind::rule || kind == Kind::flush || kind == Kind::save || kind == Kind::keep || kind == Kind::refused || kind == Kind::saved ||
         kind == Kind::invite;
}

Message of_size(Kind kind, std::uint64_t table, std::size_t rows, std::size_t bytes, const BytesPool& pool) {
  Message message = Message::of_kind(kind, table);
  message.header.count = static_cast<std::uint32_t>(rows);
  message.body = pool.take(bytes);
  message.header.length = static_cast<std::uint32_t>(bytes);
  return message;
}

}  // namespace

Message Message::of_rows(Kind kind, std::uint64_t table, std::size_t rows, std::size_t bytes_a_row, const BytesPool& pool) {
  return of_size(kind, table, rows, rows * (sizeof(Key) + (has_values(kind) ? bytes_a_row : 0)), pool);
}

Message Message::of_changes(std::uint64_t table, std::size_t rows, std::size_t bytes, const BytesPool& pool) {
  return of_size(Kind::changes, table, rows, bytes, pool);
}

Message Message::of_text(Kind kind, std::uint64_t table, const std::string& text) {
  Message message = of_size(kind, table, 0, text.size(), *BytesPool::of_process());
  std::ranges::copy(std::as_bytes(std::span(text)), message.body.data());
  return message;
}

std::string fault_of(const Header& header, bool to_server) {
  if (header.kind < Kind::open || header.kind > kLast) return "a message of unknown kind " + std::to_string(static_cast<int>(header.kind));
  if ((header.kind <= kLastToServer) != to_server) return "a message on the wrong lane";
  if (header.length > (has_text(header.kind) ? kLongestText : kLongestBody)) return "a message of " + std::to_string(header.length) + " bytes";
  if (!has_text(header.kind) && !has_keys(header.kind) && !has_more(header.kind) && !has_changes(header.kind) && header.length != 0) return "a body where none belongs";
  if (has_keys(header.kind) && header.length / sizeof(Key) < header.count) return "fewer bytes than keys";
  if (has_keys(header.kind) && header.count > 0 && header.length % header.count != 0) return "rows of unequal length";
  if (has_changes(header.kind) && header.length / (sizeof(Key) + sizeof(std::uint64_t)) < header.count) return "fewer bytes than keys and their columns";
  if (has_more(header.kind) && (header.length / sizeof(Key) < header.count )) return "a call that is none";
  if (header.kind == Kind::call && header.length > 2 * kMessageBytes) return "a call of " + std::to_string(header.length) + " bytes";
  if (header.kind == Kind::call && (header.length % sizeof(Key) != header.worker % sizeof(Key) || header.length - header.count * sizeof(Key) < header.worker)) {
    return "a call without a name";
  }
  if (header.clock != kNever && (header.clock > kLastClock || header.clock < -kLastClock)) return "a clock of " + std::to_string(header.clock);
  return "";
}

std::string fault_of(const Message& message, std::size_t bytes_a_row) {
  const Header& header = message.header;
  if (has_more(header.kind)) return "";
  if (!has_keys(header.kind)) return header.kind <= kLastToServer && header.count != 0 ? "keys where none belong" : "";
  const std::size_t expected = header.count * (sizeof(Key) + (has_values(header.kind) ? bytes_a_row : 0));
  if (header.length == expected) return "";
  return std::to_string(header.length) + " bytes for " + std::to_string(header.count) + " rows of " + std::to_string(bytes_a_row);
}

}  // namespace shoal::table
