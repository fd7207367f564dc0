#include "shoal/collective/going_on.h"

#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "shoal/collective/joint.h"
#include "shoal/net/call.h"
#include "shoal/net/narrowed.h"

namespace shoal::collective {
namespace {

constexpr Nanoseconds kAsLongAsItTakes = std::chrono::hours(24) * 3650;  // who is silent is lost before, and the part has deadlines of its own
constexpr std::uint16_t kAgreement = net::Narrowed::kChannels;           // the channel on which members agree; those behind it are the attempts'

std::uint16_t first_channel(std::uint64_t epoch) {
  const std::uint64_t first = (epoch + 2) * net::Narrowed::kChannels;
  if (first + net::Narrowed::kChannels > 0xFFFF)
    throw Error(Code::unsupported, "too many members were lost one after another", "", "begin anew with those that are left");
  return static_cast<std::uint16_t>(first);
}

// Members that agree on who is left, made and given up by any thread; they live on the loop.
class Agreed {
 public:
  explicit Agreed(net::Transport& transport) : transport_(transport) {
    std::vector<net::Rank> all(transport.size());
    std::iota(all.begin(), all.end(), net::Rank{0});
    net::call(transport, [this, all = std::move(all)] { survivors_ = std::make_shared<Survivors>(transport_, all, kAgreement); });
    if (!survivors_) throw Error(Code::cancelled, "the transport has ended", "those who are left");
  }
  ~Agreed() {
    net::call(transport_, [survivors = std::move(survivors_)]() mutable { survivors.reset(); });
  }
  Agreed(const Agreed&) = delete;
  Survivors& survivors() { return *survivors_; }

 private:
  net::Transport& transport_;
  std::shared_ptr<Survivors> survivors_;
};

}  // namespace

void go_on_without_lost(net::Transport& transport, const std::string& label, const std::function<void(net::Transport& among)>& part) {
  if (transport.on_peer_lost() != net::OnPeerLost::shrink || transport.size() == 1) return part(transport);
  Agreed agreed(transport);
  do_together(transport, agreed.survivors(), kAsLongAsItTakes, label, [&](const Attempt& attempt) {
    net::Narrowed among(transport, attempt.runner->members(), first_channel(attempt.epoch));
    try {
      part(among);
    } catch (const std::exception&) {
      // What it ran into follows from a loss, whatever it says.
      if (const net::Failure why = among.failure(); why && why->code() == Code::peer_lost && !transport.failure()) throw Error(*why);
      throw;
    }
  });
}

}  // namespace shoal::collective
