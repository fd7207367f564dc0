#include "shoal/nn/tensor_regions.h"

#include <ATen/Functions.h>

#include <string>
#include <utility>

#include "shoal/core/text.h"
#include "shoal/net/call.h"

namespace shoal::nn {
namespace {

constexpr Nanoseconds kAtTheEnd = std::chrono::seconds(2);  // as for what is queued when a member leaves

std::span<std::byte> writable(const at::Tensor& tensor) {
  if (!tensor.device().is_cpu() || !tensor.is_contiguous()) {
    throw Error(Code::invalid_argument, "a region takes contiguous tensors of the CPU", "regions", "pass tensor.contiguous().cpu()");
  }
  return {static_cast<std::byte*>(tensor.data_ptr()), tensor.nbytes()};
}

// Whether it came to that, before the patience or the transport ended.
template <class Reached>
bool comes_to(net::Transport& transport, Nanoseconds patience, const Reached& reached) {
  net::wait_for(transport, [&] { return reached() || transport.failure(); }, patience);
  return reached();
}

[[noreturn]] void throw_failure_or(const net::Transport& transport, const Error& late) {
  if (const net::Failure failure = transport.failure()) throw Error(*failure);
  throw late;
}

}  // namespace

TensorRegions::TensorRegions(Session& session) : session_(session) {
  const std::uint16_t channel = session.new_channel();
  if (session.size() == 1) return;
  const auto made = net::call(session.transport(), [&transport = session.transport(), channel] { return std::make_shared<net::Regions>(transport, channel); });
  if (!made) throw Error(Code::internal, "the network's loop does not answer", "regions");
  regions_ = *made;
}

TensorRegions::~TensorRegions() {
  if (!regions_) return;
  comes_to(session_.transport(), kAtTheEnd, [this] { return settled(); });
  net::call(session_.transport(), [regions = std::exchange(regions_, nullptr)]() mutable { regions.reset(); });
}

std::uint32_t TensorRegions::add(const at::Tensor& tensor) {
  const std::span<std::byte> bytes = writable(tensor);
  const auto number = static_cast<std::uint32_t>(tensors_.size());
  tensors_.push_back(tensor);
  if (regions_) net::call(session_.transport(), [regions = regions_, number, bytes] { regions->add(number, bytes); });
  return number;
}

at::Tensor TensorRegions::allocate(at::IntArrayRef shape, at::ScalarType type) {
  auto tensor = at::zeros(shape, type);
  add(tensor);
  return tensor;
}

void TensorRegions::check_peer(net::Rank peer, const char* what) const {
  if (peer < session_.size() && peer != session_.rank()) return;
  throw Error(Code::invalid_argument, "no other member has rank " + std::to_string(peer), what,
              "this is rank " + std::to_string(session_.rank()) + " of " + std::to_string(session_.size()));
}

template <class Begin>
void TensorRegions::run(net::Rank peer, const char* what, Begin begin) {
  const auto ended = net::ask<net::Failure>(session_.transport(), session_.patience(), [regions = regions_, begin](const auto& tell) { begin(*regions, tell); });
  if (!ended) throw Error(Code::timeout, "rank " + std::to_string(peer) + " has not taken part within " + show_seconds(Seconds(session_.patience()).count()), what);
  if (*ended) throw Error(**ended);
}

void TensorRegions::put(net::Rank to, std::uint32_t region, std::uint64_t offset, const at::Tensor& tensor) {
  check_peer(to, "put");
  const std::span<const std::byte> bytes = writable(tensor);
  const net::Regions::Place at{region, offset * tensor.element_size()};
  run(to, "put", [=](net::Regions& regions, const auto& tell) {
    regions.put(to, at, {}, bytes, [tell, tensor](const net::Failure& why) { tell(why); });
  });
}

void TensorRegions::get(net::Rank from, std::uint32_t region, std::uint64_t offset, const at::Tensor& into) {
  check_peer(from, "get");
  const std::span<std::byte> bytes = writable(into);
  const net::Regions::Place at{region, offset * into.element_size()};
  run(from, "get", [=](net::Regions& regions, const auto& tell) {
    regions.get(from, at, {}, bytes, [tell, into](const net::Failure& why) { tell(why); });
  });
}

void TensorRegions::signal(net::Rank to, std::uint64_t sequence) {
  check_peer(to, "signal");
  unsent_->fetch_add(1);
  session_.transport().post([regions = regions_, to, sequence, unsent = unsent_] {
    regions->signal(to, sequence, [unsent](const net::Failure&) { unsent->fetch_sub(1); });
  });
}

void TensorRegions::settle() {
  if (comes_to(session_.transport(), session_.patience(), [this] { return settled(); })) return;
  throw_failure_or(session_.transport(), Error(Code::timeout, std::to_string(unsent_->load()) + " signals have not left within " +
                   show_seconds(Seconds(session_.patience()).count()), "regions", "a member has let go of its own, or has left"));
}

void TensorRegions::wait(net::Rank from, std::uint64_t sequence) {
  check_peer(from, "wait");
  if (comes_to(session_.transport(), session_.patience(), [&] { return regions_->signalled(from) >= sequence; })) return;
  throw_failure_or(session_.transport(), Error(Code::timeout, "rank " + std::to_string(from) + " has signalled " + std::to_string(regions_->signalled(from)) +
                   ", not " + std::to_string(sequence) + ", within " + show_seconds(Seconds(session_.patience()).count()), "wait",
                   "behind a put into a region that rank " + std::to_string(session_.rank()) + " has not registered no signal comes"));
}

}  // namespace shoal::nn
