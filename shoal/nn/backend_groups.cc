// Groups out of groups: split, merge, shrink.
#include <algorithm>
#include <charconv>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include "shoal/nn/backend.h"
#include "shoal/nn/store_rendezvous.h"
#include "shoal/nn/torch_error.h"

namespace shoal::nn {

c10::intrusive_ptr<c10d::Backend> Backend::of_ranks(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                                    const c10::intrusive_ptr<Options>& opts) const {
  for (const int rank : ranks) {
    TORCH_CHECK(rank >= 0 && rank < size_, "shoal: rank ", rank, " is not in the group of ", size_, " that is to be split");
  }
  const auto place = std::find(ranks.begin(), ranks.end(), rank_);
  if (place == ranks.end()) return nullptr;
  Identity identity{opts ? opts->group_name : "", {}};
  for (const int rank : ranks) identity.ranks.push_back(identity_.ranks[static_cast<std::size_t>(rank)]);
  return c10::make_intrusive<Backend>(store, static_cast<int>(place - ranks.begin()), static_cast<int>(ranks.size()),
                                      opts ? opts->timeout : timeout_.load(), std::move(identity), pretended_);
}

c10::intrusive_ptr<c10d::Backend> Backend::split(const c10::intrusive_ptr<c10d::Store>& store, const std::vector<int>& ranks,
                                                 const c10::intrusive_ptr<Options>& opts) {
  return of_ranks(store, ranks, opts);
}

c10::intrusive_ptr<c10d::Backend> Backend::merge(const c10::intrusive_ptr<c10d::Store>& store,
                                                 const c10::intrusive_ptr<Options>& opts, const int& rank, const int& size) {
  const auto timeout = opts ? opts->timeout : timeout_.load();
  Identity identity{opts ? opts->group_name : "", {}};
  // The members knew nothing of each other so far: each tells the others which rank of the job it is.
  const std::string key = "rank in the job of ";
  translated([&] {
    StoreRendezvous board(store, static_cast<net::Rank>(rank));
    board.put(key + std::to_string(rank), std::to_string(identity_.ranks[static_cast<std::size_t>(rank_)]));
    for (int member = 0; member < size; ++member) {
      const std::string told = board.get(key + std::to_string(member), timeout);
      std::uint64_t& value = identity.ranks.emplace_back();
      if (std::from_chars(told.data(), told.data() + told.size(), value).ec != std::errc{}) {
        throw Error(Code::invalid_argument, "\"" + told + "\" is not a rank", "the store of the merged group");
      }
    }
  });
  return c10::make_intrusive<Backend>(store, rank, size, timeout, std::move(identity), pretended_);
}

c10::intrusive_ptr<c10d::Backend> Backend::shrink(const std::vector<std::int64_t>& excluded, int flags,
                                                  const c10::intrusive_ptr<Options>& opts) {
  if (flags != 0) abort();
  std::vector<int> ranks;
  std::string name = "shrunk";  // whoever leaves out others than this member meets elsewhere, and not in silence here
  for (int rank = 0; rank < size_; ++rank) {
    if (std::find(excluded.begin(), excluded.end(), rank) != excluded.end()) continue;
    ranks.push_back(rank);
    name += "-" + std::to_string(rank);
  }
  auto shrunk = of_ranks(c10::make_intrusive<c10d::PrefixStore>(name, store_), ranks, opts);
  TORCH_CHECK(shrunk, "shoal: shrink: rank ", rank_, " is among those that are left out and must not call it");
  return shrunk;
}

}  // namespace shoal::nn
