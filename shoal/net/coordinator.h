// Our own place to meet: a tiny key-value server over TCP behind the same keyed challenge as every connection.
// `shoal run` holds one; members reach it by SHOAL_COORD. Bounded in clients, keys and bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "shoal/core/error.h"
#include "shoal/net/job.h"

namespace shoal::net {

class Door;

class Coordinator {
 public:
  static constexpr Rank kAnySize = UINT32_MAX;
  // Serves the members of run `job` (its default is that of find_place()), of which there are `size` if that is known. Listens at
  // once: on `bind` ("127.0.0.1:0", port 0: any), on a socket that already listens and is taken over, or by a door.
  // Throws Error{invalid_argument} naming address and port if it is taken, if `bind` cannot be read, or if it is not a
  // loopback address and there is no secret.
  Coordinator(const std::string& secret, const std::string& bind, const std::string& job = "shoal", Rank size = kAnySize);
  Coordinator(const std::string& secret, int listening_fd, const std::string& job, Rank size);
  Coordinator(std::shared_ptr<Door> door, const std::string& job, Rank size);
  // For members on other hosts: everywhere, or on the interface and the ports that `where` names.
  Coordinator(const std::string& secret, const JoinOptions& where, const std::string& job, Rank size);
  ~Coordinator();
  std::string address() const;       // for SHOAL_COORD
  // All at which other hosts may reach it, separated by commas; for SHOAL_COORD there.
  std::string addresses() const;
  std::uint64_t strangers() const;   // connections refused
  // The board, as members see it.
  void put(const std::string& key, const std::string& value);
  std::optional<std::string> find(const std::string& key) const;
  // If that is under the other key at the same moment. Returns whether it was.
  bool put_where(const std::string& key, const std::string& value, const std::string& other, const std::string& is);
  // Ends the wait of every member with this cause, and waits a moment for them to have read it.
  void give_up(const Error& why);

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

// One member's connection to it. Calls block; one thread at a time.
//
// As a member (`place`), get() does not wait out its patience where the coordinator knows that the members will never be
// complete: a rank given twice, a member that does not prove the secret, a later generation. It throws Error{mismatch}
// with the cause, the same on every member that waits.
class CoordinatorClient final : public Rendezvous {
 public:
  // Throws Error naming the address: peer_lost if nobody answers within `patience`, invalid_argument if somebody listens and is
  // silent for so long; at once invalid_argument if what listens there does not know the secret or is not ours, mismatch if the
  // rank is taken or the generation over. For a member, a coordinator that falls silent later is a member lost: rank 0, if that
  // holds it.
  // `address`: one or several, "10.0.0.5:4000,[fd00::5]:4000,node7:4000"; names are looked up each time it is tried.
  CoordinatorClient(const std::string& secret, const std::string& address, Nanoseconds patience = std::chrono::seconds(60),
                    const std::string& job = "shoal");
  CoordinatorClient(const std::string& secret, const Place& place, Nanoseconds patience = std::chrono::seconds(60));
  ~CoordinatorClient() override;
  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Nanoseconds patience) override;
  // If nobody has put anything there. Returns what is under the key then.
  std::string put_first(const std::string& key, const std::string& value);

 private:
  void connect(Nanoseconds patience);
  void write(std::uint32_t op, const std::string& key, const std::string& value);
  void exchange(std::uint32_t op, const std::string& key, const std::string& value, Nanoseconds patience);

  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace shoal::net
