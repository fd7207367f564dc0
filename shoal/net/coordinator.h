// Our own place to meet: a tiny key-value server over TCP behind the same keyed challenge as every connection.
// `shoal run` holds one; members reach it by SHOAL_COORD. Bounded in clients, keys and bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "shoal/net/job.h"

namespace shoal::net {

class Coordinator {
 public:
  // Listens at once: on `bind` ("127.0.0.1:0", port 0: any), or on a socket that already listens and is taken over.
  // Throws Error{io} naming address and port (taken), Error{invalid_argument} if `bind` cannot be read or if it is not
  // a loopback address and there is no secret.
  Coordinator(const std::string& secret, const std::string& bind);
  Coordinator(const std::string& secret, int listening_fd);
  ~Coordinator();
  std::string address() const;       // for SHOAL_COORD
  std::uint64_t strangers() const;   // connections refused

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// One member's connection to it. Calls block; one thread at a time.
class CoordinatorClient final : public Rendezvous {
 public:
  // Throws Error{io} naming the address if nobody answers within `patience`.
  CoordinatorClient(const std::string& secret, const std::string& address, Nanoseconds patience = std::chrono::seconds(60));
  ~CoordinatorClient() override;
  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Nanoseconds patience) override;

 private:
  void exchange(std::uint32_t op, const std::string& key, const std::string& value, Nanoseconds patience);

  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shoal::net
