#include "shoal/nn/staging.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/Event.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <unordered_map>
#include <utility>

namespace shoal::nn {
namespace {

// Events carry no way to be told of their end, and waiting for one in the driver keeps a core busy.
constexpr std::chrono::microseconds kLook{50};

// Runs what is handed to it once its copy is done, one after another.
class Arrivals {
 public:
  struct Copy {
    std::function<bool()> done;
    Staging::Arrived arrived;
  };
  Arrivals() : thread_([this] { run(); }) {}
  ~Arrivals() {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }
  void add(Copy copy) {
    {
      const std::lock_guard lock(mutex_);
      copies_.push_back(std::move(copy));
    }
    changed_.notify_one();
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return closing_ || !copies_.empty(); });
      if (copies_.empty()) return;
      Copy copy = std::move(copies_.front());
      copies_.pop_front();
      lock.unlock();
      std::exception_ptr fault;
      try {
        while (!copy.done()) std::this_thread::sleep_for(kLook);
      } catch (...) {
        fault = std::current_exception();
      }
      copy.arrived(fault);
      copy = {};  // what it holds may take its time
      lock.lock();
    }
  }

  std::mutex mutex_;  // guards copies_ and closing_
  std::condition_variable changed_;
  std::deque<Copy> copies_;
  bool closing_ = false;
  std::thread thread_;  // last: it uses all the others
};

at::TensorOptions pinned(const at::Tensor& like) {
  return at::TensorOptions().dtype(like.scalar_type()).device(at::kCPU).pinned_memory(true);
}

// What `second` is given from now on comes after what `first` has been given so far.
void order(const c10::Stream& first, const c10::Stream& second) {
  c10::Event event(first.device_type());
  event.record(first);
  event.block(second);
}

class DeviceStaging final : public Staging {
 public:
  explicit DeviceStaging(c10::Device device)
      : device_(device), guard_(device.type()), out_(guard_.getStreamFromGlobalPool(device, true)), in_(guard_.getStreamFromGlobalPool(device, true)) {}

  at::Tensor to_host(const at::Tensor& from, const std::vector<std::int64_t>& strides, Arrived arrived) override {
    const at::NoGradGuard no_grad;
    auto host = at::empty_strided(from.sizes(), strides, pinned(from));
    order(guard_.getStream(device_), out_);
    const c10::StreamGuard on(out_);
    host.copy_(from, /*non_blocking=*/true);
    const auto copied = std::make_shared<c10::Event>(device_.type());
    copied->record(out_);
    arrivals_.add({[copied, from] { return copied->query(); }, std::move(arrived)});  // `from` stays as long
    return host;
  }

  at::Tensor to_device(const at::Tensor& host) override {
    const at::NoGradGuard no_grad;
    const auto staged = at::empty_strided(host.sizes(), host.strides(), pinned(host));
    staged.copy_(host);
    const auto computing = guard_.getStream(device_);
    at::Tensor there;
    {
      const c10::StreamGuard on(in_);
      there = at::empty_strided(host.sizes(), host.strides(), host.options().device(device_));
      there.copy_(staged, /*non_blocking=*/true);
    }
    order(in_, computing);
    there.record_stream(computing);
    return there;
  }

  Room room(const at::Tensor& to) override {
    auto computed = std::make_shared<c10::Event>(device_.type());
    computed->record(guard_.getStream(device_));
    return {at::empty(to.sizes(), pinned(to)), std::move(computed)};
  }

  void home(const Room& room, const at::Tensor& to) override {
    const at::NoGradGuard no_grad;
    if (room.after) room.after->block(in_);
    const c10::StreamGuard on(in_);
    to.copy_(room.host, /*non_blocking=*/true);
    to.record_stream(in_);
  }

  std::optional<c10::Stream> homewards() const override { return in_; }

 private:
  const c10::Device device_;
  const c10::impl::VirtualGuardImpl guard_;
  const c10::Stream out_, in_;
  Arrivals arrivals_;
};

// A copy is made only when somebody looks for the third time; on the next device for the fifth, and so on.
class PretendedStaging final : public Staging {
 public:
  explicit PretendedStaging(c10::DeviceIndex index) : looks_(3 + 2 * index) {}
  at::Tensor to_host(const at::Tensor& from, const std::vector<std::int64_t>& strides, Arrived arrived) override {
    const auto host = at::empty_strided(from.sizes(), strides, at::TensorOptions().dtype(from.scalar_type()));
    const auto done = [host, from, left = std::make_shared<int>(looks_)] {
      if (--*left > 0) return false;
      const at::NoGradGuard no_grad;
      at::Tensor(host).copy_(from);
      return true;
    };
    arrivals_.add({done, std::move(arrived)});
    return host;
  }
  at::Tensor to_device(const at::Tensor& host) override { return host.clone(); }
  Room room(const at::Tensor& to) override { return {at::empty(to.sizes(), to.options().requires_grad(false)), nullptr}; }
  void home(const Room& room, const at::Tensor& to) override {
    const at::NoGradGuard no_grad;
    to.copy_(room.host);
  }
  std::optional<c10::Stream> homewards() const override { return std::nullopt; }

 private:
  const int looks_;
  Arrivals arrivals_;
};

}  // namespace

std::unique_ptr<Staging> Staging::of(c10::Device device) { return std::make_unique<DeviceStaging>(device); }
std::unique_ptr<Staging> Staging::pretended(c10::DeviceIndex index) { return std::make_unique<PretendedStaging>(index); }

void come_after(const c10::Stream& stream) {
  const c10::impl::VirtualGuardImpl guard(stream.device_type());
  order(stream, guard.getStream(stream.device()));
}

Staging* Staging::shared(c10::Device device, std::optional<c10::DeviceIndex> pretended) {
  if (device.is_cpu() && !pretended) return nullptr;
  static std::mutex mutex;
  static auto* const stagings = new std::unordered_map<c10::Device, std::unique_ptr<Staging>>;  // their threads may outlive every static object
  const std::lock_guard lock(mutex);
  auto& staging = (*stagings)[pretended ? c10::Device(c10::kPrivateUse1, *pretended) : device];
  if (!staging) staging = pretended ? Staging::pretended(*pretended) : Staging::of(device);
  return staging.get();
}

}  // namespace shoal::nn
