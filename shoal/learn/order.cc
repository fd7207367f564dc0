#include "shoal/learn/order.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "shoal/core/seed.h"

namespace shoal::learn {
namespace {

// Sites of random numbers (core/seed.h); members and rows' owners count on from theirs.
constexpr std::uint32_t kHeldOut = 0x6c68'0000, kShuffle = 0x6c73'0000, kInitial = 0x6c69'0000;
constexpr std::uint32_t kBlock = 1 << 14;  // samples on disk that are shuffled among each other

}  // namespace

bool held_out(std::uint64_t seed, std::uint64_t sample, double share) { return uniform(seed, sample, 0, kHeldOut) < share; }

std::vector<std::uint32_t> shuffled(std::uint32_t count, std::uint64_t seed, unsigned epoch, std::uint32_t member) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), 0u);
  std::array<std::uint32_t, 4> words{};
  for (std::uint32_t left = count; left > 1; --left) {
    const std::uint32_t draw = count - left;
    if (draw % 4 == 0) words = random_words(seed, epoch, draw / 4, kShuffle + member);
    const auto chosen = static_cast<std::uint32_t>(std::uint64_t{words[draw % 4]} * left >> 32);
    std::swap(order[left - 1], order[chosen]);
  }
  return order;
}

Order::Order(std::uint32_t count, std::uint64_t seed, unsigned epoch, std::uint32_t member, bool on_disk) : count_(count), seed_(seed), epoch_(epoch) {
  if (!on_disk) {
    order_ = shuffled(count, seed, epoch, member);
  } else if (count > 0) {
    seed_ += member * 0x9E37'79B9'7F4A'7C15u;  // a block's order is drawn where a member's is in memory
    blocks_ = shuffled((count - 1) / kBlock + 1, seed_, epoch, 0);
    std::ranges::reverse(blocks_);
  }
}

void Order::next_block() {
  assert(!blocks_.empty());
  const std::uint32_t block = blocks_.back(), begin = block * kBlock;
  blocks_.pop_back();
  order_ = shuffled(std::min(kBlock, count_ - begin), seed_, epoch_, 1 + block);
  for (std::uint32_t& sample : order_) sample += begin;
  taken_ = 0;
}

std::span<const std::uint32_t> Order::take(std::size_t samples) {
  piece_.clear();
  while (piece_.size() < samples) {
    if (taken_ == order_.size()) next_block();
    const auto some = std::span(order_).subspan(taken_, std::min(samples - piece_.size(), order_.size() - taken_));
    taken_ += some.size();
    if (some.size() == samples) return some;
    piece_.insert(piece_.end(), some.begin(), some.end());
  }
  return piece_;
}

void fill_normal(std::span<float> row, double deviation, std::uint64_t seed, std::uint64_t number, std::uint32_t site) {
  for (std::size_t column = 0; column < row.size(); ++column) {  // Box and Muller, 1958
    const auto draw = static_cast<std::uint32_t>(2 * column);
    const double first = uniform(seed, number, draw, kInitial + site), second = uniform(seed, number, draw + 1, kInitial + site);
    row[column] = static_cast<float>(deviation * std::sqrt(-2 * std::log1p(-first)) * std::cos(2 * std::numbers::pi * second));
  }
}

void fill_uniform(std::span<float> row, double high, std::uint64_t seed, std::uint64_t number, std::uint32_t site) {
  for (std::size_t column = 0; column < row.size(); ++column) {
    row[column] = static_cast<float>(high * uniform(seed, number, static_cast<std::uint32_t>(column), kInitial + site));
  }
}

}  // namespace shoal::learn
