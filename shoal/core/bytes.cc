#include "shoal/core/bytes.h"

#include <bit>
#include <cstdlib>
#include <map>
#include <mutex>
#include <new>
#include <vector>

#include "shoal/core/huge_pages.h"

namespace shoal {
namespace {

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<std::byte[], Free>;

Memory fresh(std::size_t size) {
  void* const memory = size >= 2 * kHugePage ? allocate_huge(size) : std::malloc(size);
  if (!memory) throw std::bad_alloc();
  return Memory(static_cast<std::byte*>(memory));
}

class Kept {
 public:
  Memory take(std::size_t size) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = by_size_.find(size);
      if (found != by_size_.end() && !found->second.empty()) {
        Memory memory = std::move(found->second.back());
        found->second.pop_back();
        bytes_ -= size;
        return memory;
      }
    }
    return fresh(size);
  }
  void give(Memory memory, std::size_t size) {
    constexpr std::size_t most = std::size_t{64} << 20;
    const std::lock_guard lock(mutex_);
    if (size > most) return;
    if (bytes_ + size > most) by_size_.clear(), bytes_ = 0;  // of sizes that nobody asks for any more
    by_size_[size].push_back(std::move(memory));
    bytes_ += size;
  }

 private:
  std::mutex mutex_;                                  // guards both
  std::map<std::size_t, std::vector<Memory>> by_size_;
  std::size_t bytes_ = 0;
};

// Memory for so many bytes is an eighth larger at most: bodies whose sizes vary find each other's.
std::size_t room_for(std::size_t size) {
  const std::size_t step = std::bit_floor(size) / 8;
  return (size + step - 1) / step * step;
}

}  // namespace

Bytes::Bytes(std::size_t size) : size_(size) {
  constexpr std::size_t worth_keeping = 32 * 1024;
  static const auto kept = std::make_shared<Kept>();
  if (size == 0) return;
  if (size < worth_keeping) {
    memory_ = std::shared_ptr<std::byte[]>(new std::byte[size]);
  } else {
    const std::size_t room = room_for(size);
    memory_ = std::shared_ptr<std::byte[]>(kept->take(room).release(), [room, to = kept](std::byte* memory) { to->give(Memory(memory), room); });
  }
}

}  // namespace shoal
