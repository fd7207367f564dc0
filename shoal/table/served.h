// The servers of all tables on one member, by table and shard. Threads: the transport's loop.
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
  std::vector<std::uint64_t> tables() const {
    std::vector<std::uint64_t> tables;
    for (const auto& [of, server] : servers_) {
      if (tables.empty() || tables.back() != of.first) tables.push_back(of.first);
    }
    return tables;
  }
  // What they know of workers that are lost. Lifetime: this outlives it.
  LastClocks::Here here(std::function<void(net::Rank to, Message message)> send) const {
    LastClocks::Here here;
    here.completed = [this](std::uint64_t table, std::uint32_t worker) {
      return least<Clock>(table, [&](const Server& server) { return server.completed(worker); });
    };
    here.reached = [this](std::uint64_t table) {
      Clock most = 0;
      each_of(table, [&](const Server& server) { most = std::max(most, server.reached()); });
      return most;
    };
    here.met = [this](std::uint64_t table) { return least<std::uint64_t>(table, [](const Server& server) { return server.met(); }); };
    here.cut = [this](std::uint64_t table, const Last& last) { each_of(table, [&](Server& server) { server.cut(last); }); };
    here.send = std::move(send);
    return here;
  }
  void clear() { servers_.clear(); }

 private:
  template <class Visit>
  void each_of(std::uint64_t table, const Visit& visit) const {
    for (const auto& [of, server] : servers_) {
      if (of.first == table) visit(*server);
    }
  }
  template <class Number, class Of>
  Number least(std::uint64_t table, const Of& of) const {  // 0 if there are none
    std::optional<Number> least;
    each_of(table, [&](const Server& server) { least = least ? std::min(*least, of(server)) : of(server); });
    return least.value_or(0);
  }

  std::map<std::pair<std::uint64_t, std::size_t>, std::unique_ptr<Server>> servers_;
};

}  // namespace shoal::table
