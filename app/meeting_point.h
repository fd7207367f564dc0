// Where the members of a run meet: the job's secret and the coordinator (net/coordinator.h) on a socket whose
// port the kernel chose, so that runs never race for one.
#pragma once

#include <memory>
#include <string>

#include "app/lab.h"

#include "shoal/net/job.h"

namespace shoal::net {
class Coordinator;
}

namespace shoal::app {

class MeetingPoint {
 public:
  // For the `members` of run `job`, on loopback or inside the network of `host`. Ends with this object.
  MeetingPoint(const LabHost* host, const net::JoinOptions& where, const std::string& job, unsigned members);
  // For members on other hosts: on all addresses of this one, or on the interface and ports that `where` names. The
  // secret is the one in the environment, if there is one.
  MeetingPoint(const net::JoinOptions& where, const std::string& job, unsigned members);
  ~MeetingPoint();

  const std::string& address() const { return address_; }  // "10.77.0.1:40123"; several by commas
  const std::string& secret() const { return secret_; }
  net::Coordinator& coordinator() { return *coordinator_; }

 private:
  std::string secret_, address_;
  std::unique_ptr<net::Coordinator> coordinator_;
};

}  // namespace shoal::app
