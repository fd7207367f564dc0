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

constexpr std::size_t kWorthKeeping = 32 * 1024;
constexpr std::size_t kMostKept = std::size_t{64} << 20;

// Large malloc()s begin 16 bytes behind a page. What is copied there from the beginning of one, as lendable memory is, takes fifteen times as long
// on processors whose `rep movsb`, by which the C library copies, stumbles over places that are less than 32 bytes apart but for whole pages (AMD Zen 3).
constexpr std::size_t kAlignment = 64;

std::shared_ptr<std::byte> ordinary(std::size_t size) {
  void* const memory = size >= 2 * kHugePage ? allocate_huge(size) : std::aligned_alloc(kAlignment, size);
  if (!memory) throw std::bad_alloc();
  return {static_cast<std::byte*>(memory), [](std::byte* freed) { std::free(freed); }};
}

// Memory for so many bytes is an eighth larger at most, in whole lines: bodies whose sizes vary find each other's.
std::size_t room_for(std::size_t size) {
  const std::size_t step = std::bit_floor(size) / 8;
  return (size + step - 1) / step * step;
}

}  // namespace

struct BytesPool::Kept {
  explicit Kept(Fresh of_kind) : fresh(std::move(of_kind)) {}

  std::shared_ptr<std::byte> take(std::size_t size) {
    {
      const std::lock_guard lock(mutex);
      const auto found = by_size.find(size);
      if (found != by_size.end() && !found->second.empty()) {
        auto memory = std::move(found->second.back());
        found->second.pop_back();
        bytes -= size;
        return memory;
      }
    }
    return fresh(size);
  }
  void give(std::shared_ptr<std::byte> memory, std::size_t size) {
    if (size > kMostKept) return;
    const std::lock_guard lock(mutex);
    if (bytes + size > kMostKept) by_size.clear(), bytes = 0;  // of sizes that nobody asks for any more
    by_size[size].push_back(std::move(memory));
    bytes += size;
  }

  const Fresh fresh;
  std::mutex mutex;  // guards both
  std::map<std::size_t, std::vector<std::shared_ptr<std::byte>>> by_size;
  std::size_t bytes = 0;
};

BytesPool::BytesPool(Fresh fresh) : kept_(std::make_shared<Kept>(std::move(fresh))) {}

const std::shared_ptr<const BytesPool>& BytesPool::of_process() {
  static const auto pool = std::make_shared<const BytesPool>(ordinary);
  return pool;
}

Bytes BytesPool::take(std::size_t size) const {
  if (size < kWorthKeeping) return size == 0 ? Bytes() : Bytes(std::shared_ptr<std::byte[]>(new std::byte[size]), size);
  const std::size_t room = room_for(size);
  auto memory = kept_->take(room);
  if (!memory) return Bytes(size);
  std::byte* const at = memory.get();
  const auto give_back = [to = kept_, room, memory = std::move(memory)](std::byte*) mutable { to->give(std::move(memory), room); };
  return {std::shared_ptr<std::byte[]>(at, give_back), size};
}

Bytes::Bytes(std::size_t size) : Bytes(BytesPool::of_process()->take(size)) {}

}  // namespace shoal
