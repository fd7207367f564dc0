// What packs the bulk frames of one member (core/packed_words.h): it knows where that pays, and keeps the memory that packed frames leave from. On the loop.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "shoal/net/connection.h"
#include "shoal/net/job.h"

namespace shoal::net {

class Packer {
 public:
  explicit Packer(Packing when) : when_(when) {}

  // Of a peer behind a link, or over loopback; `sending`: bytes/s to all peers together, for one thread packs for all of them.
  bool pays(bool link, double sending) const;
  // A frame of the caller's memory becomes one of its own, if that makes it fewer bytes.
  void pack(OutFrame& frame);
  // A packed frame has left.
  void take_back(OutFrame& frame);

 private:
  const Packing when_;
  std::vector<std::unique_ptr<std::byte[]>> room_;  // of the longest frame each
};

}  // namespace shoal::net
