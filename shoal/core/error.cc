#include "shoal/core/error.h"

#include <algorithm>
#include <utility>

namespace shoal {
namespace {

std::string one_line(std::string text) {
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r'; }, ' ');
  return text;
}

}  // namespace

const char* name(Code code) {
  switch (code) {
    case Code::invalid_argument:
      return "invalid_argument";
    case Code::mismatch:
      return "mismatch";
    case Code::unsupported:
      return "unsupported";
    case Code::io:
      return "io";
    case Code::timeout:
      return "timeout";
    case Code::cancelled:
      return "cancelled";
    case Code::internal:
      return "internal";
    case Code::peer_lost:
      return "peer_lost";
  }
  return "unknown";
}

int exit_code(Code code) {
  switch (code) {
    case Code::invalid_argument:
    case Code::mismatch:
    case Code::unsupported:
      return 2;
    case Code::peer_lost:
      return 3;
    case Code::io:
    case Code::timeout:
    case Code::cancelled:
    case Code::internal:
      return 1;
  }
  return 1;
}

Error::Error(Code code, std::string what, std::string where, std::string hint)
    : code_(code),
      what_(one_line(std::move(what))),
      where_(one_line(std::move(where))),
      hint_(one_line(std::move(hint))) {
  if (!where_.empty()) line_ = where_ + ": ";
  line_ += what_;
  if (!hint_.empty()) line_ += " (" + hint_ + ")";
}

void refuse(const std::string& what, const std::string& where, const std::string& hint) { throw Error(Code::invalid_argument, what, where, hint); }

}  // namespace shoal
