// How messages about rows travel: three lanes for each ordered pair of members: to its servers, to its readers, and what one server gives to another
// in the background.
#pragma once

#include <string>

#include "shoal/net/mail.h"
#include "shoal/table/message.h"

namespace shoal::table {

struct RowsMail {
  static constexpr std::uint32_t to_server = 0, to_reader = 1, background = 2, lanes = 3;
  static std::uint32_t lane_of(const Header& header) {
    if (is_given(header.kind)) return background;
    return header.kind <= kLastToServer ? to_server : to_reader;
  }
  static bool read_only(const Header& header) {  // what is checked before it is used is keys and values alone, which cannot be wrong later either
    return header.kind == Kind::update || header.kind == Kind::rows || header.kind == Kind::put || header.kind == Kind::fetched;
  }
  static net::Priority priority_of(std::uint32_t lane) { return {.cls = lane == background ? net::Class::background : net::Class::bulk}; }
  static std::string fault_of(const Header& header, std::uint32_t lane) {
    const std::string fault = table::fault_of(header, lane != to_reader);
    return fault.empty() && lane_of(header) != lane ? "a message on the wrong lane" : fault;
  }
};
using Mail = net::Mail<Message, RowsMail>;

}  // namespace shoal::table
