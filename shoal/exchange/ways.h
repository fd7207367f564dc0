// The ways that there are, each in a file of its own, and how they read their names. Internal to way.cc and those files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "shoal/exchange/way.h"

namespace shoal::exchange {

inline constexpr std::uint64_t kLeastElements = 16 * 1024;  // of a tensor that is worth making smaller: others are packed together, as they are

// A way's name taken apart at its colons.
class WayName {
 public:
  explicit WayName(std::string text);

  const std::string& text() const { return text_; }
  const std::string& family() const { return parts_.front(); }
  std::size_t arguments() const { return parts_.size() - 1; }
  // Argument `i`, or `otherwise` where the name ends before it. Throws Error{invalid_argument} unless least <= value <= most.
  double number(std::size_t i, const std::string& what, double least, double most, double otherwise) const;
  [[noreturn]] void refuse(const std::string& why) const;

 private:
  std::string text_;
  std::vector<std::string> parts_;
};

std::shared_ptr<const Way> make_all_reduce_way(const WayName& name);  // all_reduce_way.cc
std::shared_ptr<const Way> make_factors_way(const WayName& name);     // factors_way.cc
std::shared_ptr<const Way> make_hybrid_way(const WayName& name);      // hybrid_way.cc
std::shared_ptr<const Way> make_rows_way(const WayName& name);        // rows_way.cc
std::shared_ptr<const Way> make_servers_way(const WayName& name);     // servers_way.cc
std::shared_ptr<const Way> make_owners_way(const WayName& name);      // owners_way.cc
std::shared_ptr<const Way> make_bf16_way(const WayName& name);        // bf16_way.cc
std::shared_ptr<const Way> make_int8_way(const WayName& name);        // int8_way.cc
std::shared_ptr<const Way> make_topk_way(const WayName& name);        // topk_way.cc
std::shared_ptr<const Way> make_powersgd_way(const WayName& name);    // powersgd_way.cc

}  // namespace shoal::exchange
