#include "shoal/table/finite.h"

namespace shoal::table {
namespace {

constexpr const char* kNames[] = {"refuse", "clip", "pass"};

}  // namespace

const char* name(NotFinite policy) { return kNames[static_cast<int>(policy)]; }

NotFinite not_finite_from(const std::string& text) {
  const auto found = std::find(std::begin(kNames), std::end(kNames), text);
  if (found != std::end(kNames)) return static_cast<NotFinite>(found - std::begin(kNames));
  throw Error(Code::invalid_argument, "nothing is called \"" + text + "\"", "not_finite", "one of refuse, clip and pass");
}

}  // namespace shoal::table
