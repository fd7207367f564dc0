// Where the members of a run meet: the job's secret and the coordinator (net/coordinator.h) on a socket whose
// port the kernel chose, so that runs never race for one.
#pragma once

#include <memory>
#include <string>

#include "app/lab.h"

namespace shoal::net {
class Coordinator;
}

namespace shoal::app {

class MeetingPoint {
 public:
  // On loopback, or inside the network of `host`. Ends with this object.
  explicit MeetingPoint(const LabHost* host);
  ~MeetingPoint();

  const std::string& address() const { return address_; }  // "10.77.0.1:40123"
  const std::string& secret() const { return secret_; }

 private:
  std::string secret_, address_;
  std::unique_ptr<net::Coordinator> coordinator_;
};

}  // namespace shoal::app
