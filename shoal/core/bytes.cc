#include "shoal/core/bytes.h"

#include <algorithm>
#include <bit>
#include <cstdint>
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

  using Memory = std::shared_ptr<std::byte>;
  struct Size {
    std::vector<Memory> kept;
    std::uint64_t asked = 0;  // when it was last
  };

  Memory take(std::size_t size) {
    {
      const std::lock_guard lock(mutex);
      Size& of = by_size[size];
      of.asked = ++times;
      if (!of.kept.empty()) {
        Memory memory = std::move(of.kept.back());
        of.kept.pop_back();
        bytes -= size;
        return memory;
      }
    }
    return fresh(size);
  }
  // Room is made where nobody has asked for the longest time.
  void give(Memory memory, std::size_t size) {
    std::vector<Memory> leaving;  // behind the lock
    const std::lock_guard lock(mutex);
    by_size[size].kept.push_back(std::move(memory));
    bytes += size;
    while (bytes > kMostKept) {
      const auto oldest = std::ranges::min_element(by_size, {}, [](const auto& one) { return one.second.asked; });
      auto& [of, last] = *oldest;
      if (!last.kept.empty()) {
        leaving.push_back(std::move(last.kept.back()));
        last.kept.pop_back();
        bytes -= of;
      }
      if (last.kept.empty()) by_size.erase(oldest);
    }
  }

  const Fresh fresh;
  std::mutex mutex;  // guards all below
  std::map<std::size_t, Size> by_size;
  std::size_t bytes = 0;
  std::uint64_t times = 0;
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
