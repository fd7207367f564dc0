#include "shoal/table/finite.h"

namespace shoal::table {
namespace {

constexpr const char* kPolicyNames[] = {"refuse", "clip", "pass"};

}  // namespace

const char* name(NotFinite policy) { return kPolicyNames[static_cast<int>(policy)]; }

NotFinite not_finite_from(const std::string& text) {
  const auto found = std::find(std::begin(kPolicyNames), std::end(kPolicyNames), text);
  if (found != std::end(kPolicyNames)) return static_cast<NotFinite>(found - std::begin(kPolicyNames));
  throw Error(Code::invalid_argument, "nothing is called \"" + text + "\"", "not_finite", "one of refuse, clip and pass");
}

}  // namespace shoal::table
