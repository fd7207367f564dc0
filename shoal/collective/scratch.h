// Memory that runs borrow for windows and scaled inputs. Blocks come in powers of two and go back when a run ends; the
// pool keeps at most `keep_bytes` of unused ones. One thread: the transport's loop. A block may outlive its pool.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace shoal::collective {

inline constexpr std::size_t kCacheLine = 64;

struct FreeAligned {
  void operator()(std::byte* bytes) const;
};
struct ScratchBlock {
  std::unique_ptr<std::byte[], FreeAligned> bytes;  // aligned to a cache line; empty for size 0
  std::size_t size = 0;
};

class ScratchPool {
 public:
  explicit ScratchPool(std::size_t keep_bytes) : keep_(keep_bytes) {}
  ScratchBlock take(std::size_t size);  // throws Error{io} where there is no memory
  void give(ScratchBlock block);

 private:
  const std::size_t keep_;
  std::size_t kept_ = 0;
  std::array<std::vector<ScratchBlock>, 64> free_;  // by log2 of the size
};

}  // namespace shoal::collective
