#include "shoal/net/resolve.h"

#include <netdb.h>

#include <algorithm>
#include <charconv>
#include <future>
#include <memory>
#include <optional>
#include <thread>

#include "shoal/core/error.h"

namespace shoal::net {
namespace {

struct Named {
  std::string text, host;
  std::uint16_t port = 0;
  std::optional<Endpoint> endpoint;  // without a look-up
};

std::vector<Named> read(const std::string& addresses, const std::string& where) {
  std::vector<Named> all;
  for (std::size_t begin = 0; begin <= addresses.size();) {
    const std::size_t end = std::min(addresses.find(',', begin), addresses.size());
    Named one{.text = addresses.substr(begin, end - begin), .host = {}, .port = 0, .endpoint = {}};
    begin = end + 1;
    one.endpoint = parse_endpoint(one.text);
    const auto colon = one.text.rfind(':');
    const char* const last = one.text.data() + one.text.size();
    const bool well_formed = one.endpoint || (colon != std::string::npos && colon > 0 && one.text.find(':') == colon &&
                                              std::from_chars(one.text.data() + colon + 1, last, one.port).ptr == last && one.port != 0);
    if (!well_formed) {
      throw Error(Code::invalid_argument, "\"" + one.text + "\" is not an address and a port", where, "for example 10.0.0.5:29400");
    }
    if (one.endpoint) {
      one.port = one.endpoint->port();
    } else {
      one.host = one.text.substr(0, colon);
    }
    all.push_back(std::move(one));
  }
  return all;
}

std::vector<Endpoint> look_up(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &list) != 0) return {};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(list, freeaddrinfo);
  std::vector<Endpoint> found;
  for (const addrinfo* at = list; at; at = at->ai_next) {
    Endpoint endpoint;
    if (at->ai_addrlen > endpoint.capacity()) continue;
    std::copy_n(reinterpret_cast<const char*>(at->ai_addr), at->ai_addrlen, reinterpret_cast<char*>(endpoint.data()));
    endpoint.resize(at->ai_addrlen);
    endpoint.port(port);
    if (std::find(found.begin(), found.end(), endpoint) == found.end()) found.push_back(endpoint);
  }
  return found;
}

// The system's resolver has no bound of its own that a caller could set. A look-up that is over its time ends in a thread that
// nobody waits for.
std::vector<Endpoint> look_up_until(Instant deadline, const Named& name) {
  std::packaged_task<std::vector<Endpoint>()> task([host = name.host, port = name.port] { return look_up(host, port); });
  auto found = task.get_future();
  std::thread(std::move(task)).detach();
  if (found.wait_until(deadline) != std::future_status::ready) return {};
  return found.get();
}

}  // namespace

Resolved resolve(const std::string& addresses, const std::string& where, Nanoseconds patience) {
  const Instant deadline = steady_now() + patience;
  Resolved all;
  for (const Named& one : read(addresses, where)) {
    all.words += (all.words.empty() ? "" : ", ") + one.text;
    if (one.endpoint) {
      all.endpoints.push_back(*one.endpoint);
      continue;
    }
    const std::vector<Endpoint> found = look_up_until(deadline, one);
    std::string stands_for;
    for (const Endpoint& at : found) stands_for += (stands_for.empty() ? "" : ", ") + show(at);
    all.words += " (" + (found.empty() ? "an unknown name" : stands_for) + ")";
    all.endpoints.insert(all.endpoints.end(), found.begin(), found.end());
  }
  return all;
}

std::uint16_t port_in(const std::string& addresses, const std::string& where) { return read(addresses, where).front().port; }

}  // namespace shoal::net
