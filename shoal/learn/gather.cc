#include "shoal/learn/gather.h"

#include <atomic>
#include <memory>
#include <mutex>

#include "shoal/core/error.h"
#include "shoal/net/call.h"

namespace shoal::learn {
namespace {

constexpr std::uint64_t kLongest = std::uint64_t{1} << 40;

struct Gathering {
  Gathering(net::Transport& of_transport, net::Tag tag) : transport(of_transport), length_tag(tag), body_tag{tag.operation, 1}, lengths(of_transport.size()), bodies(of_transport.size()) {}

  net::Transport& transport;
  const net::Tag length_tag, body_tag;
  std::vector<std::uint64_t> lengths;
  std::vector<Bytes> bodies;
  std::atomic<std::size_t> open = 0;  // transfers that are under way
  std::mutex mutex;
  net::Failure failure;               // guarded by mutex

  void end(const net::Failure& why) {
    if (why) {
      const std::lock_guard lock(mutex);
      failure = why;
    }
    open.fetch_sub(1, std::memory_order_release);
  }
};

std::span<std::byte> bytes_of(std::uint64_t& number) { return std::as_writable_bytes(std::span(&number, 1)); }

void receive(const std::shared_ptr<Gathering>& all, net::Rank from) {
  all->transport.receive(from, all->length_tag, {.cls = net::Class::urgent}, bytes_of(all->lengths[from]), [all, from](const net::Failure& why) {
    if (why) return all->end(why);
    const std::uint64_t length = all->lengths[from];
    if (length > kLongest) {
      all->transport.fail(Error(Code::mismatch, "rank " + std::to_string(from) + " sent no part of a model", "", "run the same program on all members"));
      return all->end(all->transport.failure());
    }
    if (length == 0) return all->end(nullptr);
    all->bodies[from] = Bytes(length);
    all->transport.receive(from, all->body_tag, {}, all->bodies[from], [all](const net::Failure& failure) { all->end(failure); });
  });
}

void send(const std::shared_ptr<Gathering>& all, const Bytes& own) {
  all->lengths[0] = own.size();
  all->transport.send(0, all->length_tag, {.cls = net::Class::urgent}, bytes_of(all->lengths[0]), [all](const net::Failure& why) { all->end(why); });
  if (own.empty()) return all->end(nullptr);
  all->transport.send(0, all->body_tag, {}, own, [all, own](const net::Failure& why) { all->end(why); });
}

}  // namespace

std::vector<Bytes> Gather::operator()(Bytes own, const std::string& what) {
  const net::Rank rank = transport_.rank();
  const auto all = std::make_shared<Gathering>(transport_, net::Tag{net::operation_in(channel_, calls_++), 0});
  all->open = rank == 0 ? transport_.size() - 1 : 2;
  transport_.post([all, own, rank] {
    if (rank != 0) return send(all, own);
    for (net::Rank from = 1; from < all->transport.size(); ++from) receive(all, from);
  });
  if (!net::wait_for(transport_, [&] { return all->open.load(std::memory_order_acquire) == 0; }, patience_)) {
    throw Error(Code::timeout, "waited " + std::to_string(std::chrono::ceil<std::chrono::seconds>(patience_).count()) + " s for " + what + " of all members");
  }
  const std::lock_guard lock(all->mutex);
  if (all->failure) throw Error(*all->failure);
  if (rank != 0) return {};
  all->bodies[0] = std::move(own);
  return std::move(all->bodies);
}

}  // namespace shoal::learn
