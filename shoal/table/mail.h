// How messages about rows travel: two lanes for each ordered pair of members, to its servers and to its readers.
#pragma once

#include <string>

#include "shoal/net/mail.h"
#include "shoal/table/message.h"

namespace shoal::table {

struct RowsMail {
  static constexpr std::uint32_t lanes = 2;
  static std::uint32_t lane_of(const Header& header) { return header.kind <= kLastToServer ? 0 : 1; }
  static std::string fault_of(const Header& header, std::uint32_t lane) { return table::fault_of(header, lane == 0); }
};
using Mail = net::Mail<Message, RowsMail>;

}  // namespace shoal::table
