// Between a device's memory and the host's, beside what the device computes: copies run on streams of their own through pinned memory, and
// nobody who has work to do waits for one. The device's stream is never waited for on the host; a thread of this looks after copies that leave.
//
// Any device of PyTorch that has streams and events (c10::impl::VirtualGuardImpl): CUDA, and whatever else is registered. For tests there are some
// that are none: tensors of the CPU, whose copies are late, each device's later than those of the one before.
//
// Threads: any; `Arrived` on the staging's own, in the order of the calls.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace shoal::nn {

class Staging {
 public:
  using Arrived = std::function<void(const std::exception_ptr& fault)>;  // fault: why the device has not copied; nullptr: it has

  static std::unique_ptr<Staging> of(c10::Device device);
  static std::unique_ptr<Staging> pretended(c10::DeviceIndex index);  // the CPU as such a device
  // The whole process's, made when first asked for and never freed. pretended: the CPU as the device of that index. nullptr: the host's own memory. Any thread.
  static Staging* shared(c10::Device device, std::optional<c10::DeviceIndex> pretended);
  virtual ~Staging() = default;  // first finishes what is under way

  // Copies `from` behind all that the device's current stream has been given so far, into pinned memory of these strides. What comes back may be
  // read once `arrived` runs without a fault.
  virtual at::Tensor to_host(const at::Tensor& from, const std::vector<std::int64_t>& strides, Arrived arrived) = 0;
  // A copy of `host` on the device, which the device's current stream waits for. `host` is free again when this returns.
  virtual at::Tensor to_device(const at::Tensor& host) = 0;

  // Where what comes for `to` may be written: contiguous and pinned. home() then copies it there, behind all that the device's current stream had been given
  // when room() was called; who reads `to` comes after homewards().
  struct Room {
    at::Tensor host;
    std::shared_ptr<c10::Event> after;  // nullptr: what came from `to` itself, by to_host
  };
  virtual Room room(const at::Tensor& to) = 0;
  virtual void home(const Room& room, const at::Tensor& to) = 0;
  virtual std::optional<c10::Stream> homewards() const = 0;  // none: home() is done when it returns
};

// What the current stream of that device is given from now on comes after what `stream` has been given so far.
void come_after(const c10::Stream& stream);

}  // namespace shoal::nn
