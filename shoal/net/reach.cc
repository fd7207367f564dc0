#include "shoal/net/reach.h"

#include <algorithm>

#include "shoal/core/error.h"

namespace shoal::net {
namespace {

bool same_subnet(const asio::ip::address& other, const LocalAddress& mine) {
  if (other.is_v4() != mine.address.is_v4()) return false;
  const auto compare = [&](const auto& a, const auto& b) {
    for (unsigned bit = 0; bit < mine.prefix_length; ++bit) {
      if ((a[bit / 8] ^ b[bit / 8]) & (0x80 >> bit % 8)) return false;
    }
    return true;
  };
  if (other.is_v4()) return compare(other.to_v4().to_bytes(), mine.address.to_v4().to_bytes());
  return compare(other.to_v6().to_bytes(), mine.address.to_v6().to_bytes());
}

bool has_ipv6() {
  std::error_code error;
  asio::ip::tcp::acceptor acceptor(Loop::shared().io());
  acceptor.open(asio::ip::tcp::v6(), error);
  if (!error) acceptor.bind({asio::ip::address_v6::any(), 0}, error);
  return !error;
}

std::shared_ptr<Door> door_at(const asio::ip::address& address, PortRange ports, const Key& key) {
  for (std::uint32_t port = ports.first;; ++port) {
    try {
      return std::make_shared<Door>(Endpoint(address, static_cast<std::uint16_t>(port)), key);
    } catch (const Error& error) {
      if (error.code() != Code::invalid_argument || ports.first == ports.last) throw;
      if (port < ports.last) continue;
    }
    throw Error(Code::invalid_argument, "none of the ports " + std::to_string(ports.first) + "-" + std::to_string(ports.last) + " is free",
                "SHOAL_PORT_RANGE", "choose other ports, or a wider range");
  }
}

}  // namespace

std::shared_ptr<Door> make_door(const std::string& secret, const JoinOptions& options, PortRange ports,
                                const std::vector<LocalAddress>& addresses) {
  const Key key = derive_key(secret);
  if (secret.empty()) return door_at(asio::ip::address_v4::loopback(), ports, key);
  if (!options.interface.empty()) return door_at(addresses.front().address, ports, key);
  if (has_ipv6()) return door_at(asio::ip::address_v6::any(), ports, key);
  return door_at(asio::ip::address_v4::any(), ports, key);
}

std::vector<Endpoint> reachable_at(const Endpoint& bound, const std::vector<LocalAddress>& addresses) {
  if (!bound.address().is_unspecified()) return {bound};
  std::vector<Endpoint> all = {{asio::ip::address_v4::loopback(), bound.port()}};
  if (bound.address().is_v6()) all.emplace_back(asio::ip::address_v6::loopback(), bound.port());
  for (const LocalAddress& at : addresses) {
    const bool listened = at.address.is_v4() || bound.address().is_v6();
    if (listened && !at.address.is_loopback()) all.emplace_back(at.address, bound.port());
  }
  return all;
}

const Endpoint& for_people(const Card& card) {
  const auto seen = std::find_if(card.candidates.begin(), card.candidates.end(), [](const Endpoint& at) { return !at.address().is_loopback(); });
  return seen == card.candidates.end() ? card.candidates.front() : *seen;
}

std::vector<Endpoint> in_order(const Card& peer, Rank rank, const Card& self, const std::vector<LocalAddress>& mine) {
  std::vector<Endpoint> order = peer.candidates;
  const auto cost = [&](const Endpoint& at) {
    if (at.address().is_loopback()) return 0;
    return std::any_of(mine.begin(), mine.end(), [&](const LocalAddress& own) { return same_subnet(at.address(), own); }) ? 1 : 2;
  };
  if (peer.info.boot != self.info.boot) {
    std::erase_if(order, [](const Endpoint& at) { return at.address().is_loopback(); });
  }
  if (order.empty()) {
    std::string only;
    for (const Endpoint& at : peer.candidates) only += (only.empty() ? ", only " : ", ") + show(at);
    throw Error(Code::invalid_argument, "rank " + std::to_string(rank) + " (" + peer.info.host + ") has no address that " + self.info.host +
                " could reach" + only, "join", "see `ip address` there: an interface must be up, with an address that is not link-local");
  }
  std::stable_sort(order.begin(), order.end(), [&](const auto& a, const auto& b) { return cost(a) < cost(b); });
  return order;
}

}  // namespace shoal::net
