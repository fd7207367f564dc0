// A c10d Store as the board where members meet (net::Rendezvous): what torchrun and init_process_group bring along.
// Keys lie under an epoch, so that a second group on the same Store does not read the addresses of the first.
//
// The Store is only used while joining. Threads: one at a time, as net::Rendezvous.
#pragma once

#include <optional>
#include <string>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include "shoal/net/job.h"

namespace shoal::nn {

class StoreRendezvous final : public net::Rendezvous {
 public:
  // The epoch is the number of times that `rank` has joined through this Store: equal on all members, because all
  // of them make the same groups in the same order. Throws Error{io} if the Store does not answer.
  StoreRendezvous(c10::intrusive_ptr<c10d::Store> store, net::Rank rank);

  void put(const std::string& key, const std::string& value) override;
  std::string get(const std::string& key, Nanoseconds patience) override;

  std::uint64_t epoch() const { return epoch_; }  // from 1
  // The job's secret: SHOAL_SECRET or SHOAL_SECRET_FILE; else one that rank 0 makes and the Store carries.
  struct Secret {
    std::string bytes;
    bool from_store = false;  // anybody who can read the Store has it
  };
  Secret secret(net::Rank rank, Nanoseconds patience);

 private:
  std::string path(const std::string& key) const;

  c10::intrusive_ptr<c10d::Store> store_;
  std::uint64_t epoch_ = 0;
};

}  // namespace shoal::nn
