#include "shoal/collective/joint.h"

#include <atomic>
#include <optional>
#include <utility>

#include "shoal/collective/started.h"
#include "shoal/net/call.h"

namespace shoal::collective {
namespace {


// The loop writes what is new, then says so; the caller reads it, and answers by a post.
class Joint final : public Work {
 public:
  void begin(const Attempt& attempt, net::Done held) override {
    attempt_ = attempt;
    held_ = std::move(held);
    stopped_.store(false, std::memory_order_relaxed);
    news_.store(true, std::memory_order_release);
  }
  void stop(const net::Failure& why) override {
    stopped_.store(true, std::memory_order_release);
    attempt_.runner->end(why);
  }
  void committed(const std::vector<Contributor>& contributors) override {
    contributors_ = contributors;
    over_ = true;
    news_.store(true, std::memory_order_release);
  }
  void failed(const net::Failure& why) override {
    why_ = why;
    committed({});
  }

  bool has_news() const { return news_.load(std::memory_order_acquire); }
  void take_news() { news_.store(false, std::memory_order_relaxed); }
  bool stopped() const { return stopped_.load(std::memory_order_acquire); }  // by the members: what the part throws says no more
  bool over() const { return over_; }
  const net::Failure& why() const { return why_; }
  Attempt attempt() const { return attempt_; }
  std::vector<Contributor> contributors() const { return contributors_; }
  void settled(const net::Failure& why) { std::exchange(held_, nullptr)(why); }  // the loop

 private:
  std::atomic<bool> news_ = false, stopped_ = false;
  Attempt attempt_;
  net::Done held_;
  bool over_ = false;
  net::Failure why_;
  std::vector<Contributor> contributors_;
};

}  // namespace

std::vector<Contributor> do_together(net::Transport& transport, Survivors& survivors, Nanoseconds patience, const std::string& label,
                                     const std::function<void(const Attempt&)>& part, double says) {
  const auto joint = std::make_shared<Joint>();
  transport.post([&survivors, joint, patience, label, says] { survivors.start(joint, kJointOperations, says, patience, label); });
  std::exception_ptr own;
  for (;;) {
    // The loop may still come to what the part uses: no way on is safe.
    if (!net::wait_for(transport, [&] { return joint->has_news(); }, patience + kAgrees)) end_process(label);
    joint->take_news();
    if (joint->over()) break;
    net::Failure why;
    try {
      part(joint->attempt());
    } catch (const Error& error) {
      why = std::make_shared<const Error>(error);
      if (error.code() != Code::peer_lost && !joint->stopped()) own = std::current_exception();
    } catch (...) {
      why = std::make_shared<const Error>(Code::internal, "this member could not go on", label);
      own = std::current_exception();
    }
    transport.post([joint, why] { joint->settled(why); });
  }
  if (own) std::rethrow_exception(own);
  if (joint->why()) throw Error(*joint->why());
  return joint->contributors();
}

}  // namespace shoal::collective
