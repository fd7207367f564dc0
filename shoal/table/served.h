// The servers of all tables on one member, by table and shard. One that has not all of its shard yet, or has
// parted with it (handover.h), is asked nothing. Threads: the transport's loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "shoal/table/last_clocks.h"
#include "shoal/table/shard.h"

namespace shoal::table {

class Served {
 public:
  Server* find(std::uint64_t table, std::size_t shard) const {
    const auto found = servers_.find({table, shard});
    return found == servers_.end() ? nullptr : found->second.get();
  }
  Server& add(std::uint64_t table, std::size_t shard, std::unique_ptr<Server> server) {
    return *(servers_[{table, shard}] = std::move(server));
  }
  template <class Visit>
  void each(const Visit& visit) const {
    for (const auto& [of, server] : servers_) visit(*server);
  }
  // visit(table, shard, server)
  template <class Visit>
  void each_named(const Visit& visit) const {
    for (const auto& [of, server] : servers_) visit(of.first, of.second, *server);
  }
  std::vector<std::uint64_t> tables() const {
    std::vector<std::uint64_t> tables;
    for (const auto& [of, server] : servers_) {
      if (tables.empty() || tables.back() != of.first) tables.push_back(of.first);
    }
    return tables;
  }
  // What they know of workers that are lost; none: nobody is serving that table here.
  std::optional<Clock> completed(std::uint64_t table, std::uint32_t worker) const {
    return least<Clock>(table, [worker](const Server& server) { return server.completed(worker); });
  }
  std::optional<std::uint64_t> met(std::uint64_t table) const {
    return least<std::uint64_t>(table, [](const Server& server) { return server.met(); });
  }
  Clock reached(std::uint64_t table) const {
    Clock most = 0;
    each_of(table, [&](const Server& server) { most = std::max(most, server.reached()); });
    return most;
  }
  void cut(std::uint64_t table, const Last& last) {
    each_of(table, [&](Server& server) { server.cut(last); });
  }
  void remove(std::uint64_t table, std::size_t shard) { servers_.erase({table, shard}); }
  void clear() { servers_.clear(); }

 private:
  template <class Visit>
  void each_of(std::uint64_t table, const Visit& visit) const {
    for (const auto& [of, server] : servers_) {
      if (of.first == table && server->is_whole() && !server->has_parted()) visit(*server);
    }
  }
  template <class Number, class Of>
  std::optional<Number> least(std::uint64_t table, const Of& of) const {
    std::optional<Number> least;
    each_of(table, [&](const Server& server) { least = least ? std::min(*least, of(server)) : of(server); });
    return least;
  }

  std::map<std::pair<std::uint64_t, std::size_t>, std::unique_ptr<Server>> servers_;
};

}  // namespace shoal::table
