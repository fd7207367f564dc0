#include "shoal/learn/departure.h"

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "shoal/net/call.h"

namespace shoal::learn {

void leave_together(net::Transport& transport, std::uint16_t channel, Nanoseconds patience) {
  struct Words {
    explicit Words(net::Rank size) : heard(size), left(2 * (size - 1)) {}
    std::byte said{};
    std::vector<std::byte> heard;   // by rank
    std::atomic<std::uint32_t> left;  // to be said or heard
  };
  const auto words = std::make_shared<Words>(transport.size());
  transport.post([&transport, words, tag = net::Tag{net::operation_in(channel, 0), 0}] {
    const net::Priority urgent{.cls = net::Class::urgent};
    const auto done = [words](const net::Failure& failure) {
      if (!failure) --words->left;
    };
    for (net::Rank peer = 0; peer < transport.size(); ++peer) {
      if (peer == transport.rank()) continue;
      transport.receive(peer, tag, urgent, std::span(&words->heard[peer], 1), done);
      transport.send(peer, tag, urgent, std::span(&words->said, 1), done);
    }
  });
  const bool over = net::wait_for(transport, [&] { return words->left == 0 || transport.failure(); }, patience);
  if (words->left == 0) return;
  if (const net::Failure failure = transport.failure()) throw Error(*failure);
  if (!over) throw Error(Code::timeout, "waited for all members to end");
}

}  // namespace shoal::learn
