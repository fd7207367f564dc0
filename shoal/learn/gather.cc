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
  Bytes own;
  std::uint64_t own_length = 0;
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

void send(const std::shared_ptr<Gathering>& all, net::Rank to) {
  const auto end = [all](const net::Failure& why) { all->end(why); };
  all->transport.send(to, all->length_tag, {.cls = net::Class::urgent}, bytes_of(all->own_length), end);
  if (all->own.empty()) return all->end(nullptr);
  all->transport.send(to, all->body_tag, {}, all->own, end);
}

}  // namespace

std::vector<Bytes> Gather::gathered(Bytes own, const std::string& what, bool on_all) {
  const net::Rank rank = transport_.rank(), others = transport_.size() - 1;
  const bool receives = on_all || rank == 0;
  const auto all = std::make_shared<Gathering>(transport_, net::Tag{net::operation_in(channel_, calls_++), 0});
  all->own_length = own.size();
  all->own = std::move(own);
  all->open = (receives ? others : 0) + 2 * (on_all ? others : rank == 0 ? 0 : 1);
  transport_.post([all, rank, others, receives, on_all] {
    for (net::Rank other = 0; other <= others; ++other) {
      if (other == rank) continue;
      if (receives) receive(all, other);
      if (on_all || other == 0) send(all, other);
    }
  });
  if (!net::wait_for(transport_, [&] { return all->open.load(std::memory_order_acquire) == 0; }, patience_)) {
    throw Error(Code::timeout, "waited " + std::to_string(std::chrono::ceil<std::chrono::seconds>(patience_).count()) + " s for " + what + " of all members");
  }
  const std::lock_guard lock(all->mutex);
  if (all->failure) throw Error(*all->failure);
  if (!receives) return {};
  all->bodies[rank] = std::move(all->own);
  return std::move(all->bodies);
}

}  // namespace shoal::learn
