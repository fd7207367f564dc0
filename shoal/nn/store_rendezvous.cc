#include "shoal/nn/store_rendezvous.h"

#include <c10/util/Exception.h>

#include <algorithm>

#include "shoal/core/error.h"
#include "shoal/core/random.h"
#include "shoal/core/text.h"

namespace shoal::nn {
namespace {

constexpr const char* kStore = "the process group's store";

std::chrono::milliseconds milliseconds_of(Nanoseconds patience) {
  // c10d reads 0 as "no timeout"; every wait of ours has one.
  return std::max(std::chrono::milliseconds(1), std::chrono::duration_cast<std::chrono::milliseconds>(patience));
}

// The Store's own errors run over several lines; the first one is the fact.
Error store_error(const c10::Error& error) {
  const std::string text = error.what_without_backtrace();
  return Error(Code::io, text.substr(0, text.find('\n')), kStore, "is the process that hosts it still running?");
}

}  // namespace

StoreRendezvous::StoreRendezvous(c10::intrusive_ptr<c10d::Store> store, net::Rank rank) : store_(std::move(store)) {
  try {
    epoch_ = static_cast<std::uint64_t>(store_->add("shoal/joined/" + std::to_string(rank), 1));
  } catch (const c10::Error& error) {
    throw store_error(error);
  }
}

std::string StoreRendezvous::path(const std::string& key) const { return "shoal/" + std::to_string(epoch_) + "/" + key; }

void StoreRendezvous::put(const std::string& key, const std::string& value) {
  try {
    store_->set(path(key), value);
  } catch (const c10::Error& error) {
    throw store_error(error);
  }
}

std::string StoreRendezvous::get(const std::string& key, Nanoseconds patience) {
  try {
    store_->wait({path(key)}, milliseconds_of(patience));
  } catch (const c10::DistStoreError&) {
    throw Error(Code::timeout, "no member wrote \"" + key + "\" within " + show_seconds(Seconds(patience).count()), kStore);
  } catch (const c10::Error& error) {
    throw store_error(error);
  }
  const std::vector<std::uint8_t> value = store_->get(path(key));
  if (value.size() > kLongestValue) {
    throw Error(Code::invalid_argument, "the value of \"" + key + "\" is longer than any that a member writes", kStore);
  }
  return {value.begin(), value.end()};
}

StoreRendezvous::Secret StoreRendezvous::secret(net::Rank rank, Nanoseconds patience) {
  // Rank 0 says which way it is, so that a member whose environment differs learns it here and not as a refused stranger.
  const auto own = net::find_secret();
  if (rank == 0) put("secret", own ? "environment" : random_hex(32));
  const std::string carried = get("secret", patience);
  if (own.has_value() != (carried == "environment")) {
    throw Error(Code::mismatch,
                own ? "this member has a secret in its environment and rank 0 has none"
                    : "rank 0 has a secret in its environment and this member has none",
                "rank " + std::to_string(rank), "set SHOAL_SECRET or SHOAL_SECRET_FILE on every member, or on none");
  }
  return own ? Secret{*own, false} : Secret{carried, true};
}

}  // namespace shoal::nn
