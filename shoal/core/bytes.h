// Memory that is shared and not copied: a message's body, which several links send; a block of rows, which becomes one as it lies. It stays
// while somebody holds it, and is written before others see it. New memory holds anything. Threads: any.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>

namespace shoal {

class Bytes {
 public:
  Bytes() = default;
  explicit Bytes(std::size_t size);  // of the process
  Bytes(std::shared_ptr<std::byte[]> memory, std::size_t size) : memory_(std::move(memory)), size_(size) {}  // of another kind
  std::byte* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::byte* begin() const { return data(); }
  std::byte* end() const { return data() + size_; }

 private:
  std::shared_ptr<std::byte[]> memory_;
  std::size_t size_ = 0;
};

// Memory of one kind. What was let go is kept for the next one of about its size, up to a bound: fresh pages cost as much as copying what they are to hold.
class BytesPool {
 public:
  // fresh: so much of that kind, on the thread that takes some; nullptr: there is none, and memory of the process takes its place.
  using Fresh = std::function<std::shared_ptr<std::byte>(std::size_t size)>;
  explicit BytesPool(Fresh fresh);
  static const std::shared_ptr<const BytesPool>& of_process();
  Bytes take(std::size_t size) const;

 private:
  struct Kept;
  const std::shared_ptr<Kept> kept_;  // outlives the pool while somebody holds what came from it
};

}  // namespace shoal
