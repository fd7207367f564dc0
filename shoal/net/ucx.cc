#include "shoal/net/ucx.h"

#include <dlfcn.h>
#include <poll.h>

#include <cstdlib>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>

#include "shoal/core/error.h"

namespace shoal::net {
namespace {

// The few declarations of UCP's API 1.13 that we need (ucp.h). Later ones of libucp.so.0 keep them: structures grow behind their ends, and their masks say
// which fields are there.
namespace ucp_abi {

using Status = std::int8_t;
using Request = void*;  // nullptr: done; the last hundred addresses: a status
constexpr Status kOk = 0, kBusy = -15;
constexpr unsigned kMajor = 1, kMinor = 13;
constexpr std::uint64_t kFeatures = 1 << 0, kRma = 1 << 1, kWakeup = 1 << 4;
constexpr std::uint64_t kThreadMode = 1 << 0;
constexpr int kSerialized = 1;
constexpr std::uint64_t kMemory = 1 << 0 | 1 << 1;
constexpr std::uint64_t kAddress = 1 << 0, kErrorMode = 1 << 1, kErrorHandler = 1 << 2;
constexpr int kErrorsOfPeers = 1;
constexpr std::uint32_t kCallback = 1 << 1, kUserData = 1 << 2, kFlags = 1 << 4;
constexpr std::uint32_t kForce = 1 << 0;

struct Params {
  std::uint64_t mask = 0, features = 0;
  std::size_t request_size = 0;
  void (*init)(void*) = nullptr;
  void (*cleanup)(void*) = nullptr;
  std::uint64_t tags = 0;
  int shared = 0;
  std::size_t endpoints = 0, of_node = 0;
  const char* name = nullptr;
};
struct WorkerParams {
  std::uint64_t mask = 0;
  int thread_mode = 0;
  std::uint64_t cpus[16] = {};
  unsigned events = 0;
  void* user = nullptr;
  int event_fd = -1;
  std::uint64_t flags = 0;
  const char* name = nullptr;
  std::size_t alignment = 0;
  std::uint64_t client = 0;
};
struct MemoryParams {
  std::uint64_t mask = 0;
  void* address = nullptr;
  std::size_t length = 0;
  unsigned flags = 0, protection = 0;
  int type = 0;
};
struct SocketAddress {
  const void* address = nullptr;
  std::uint32_t length = 0;
};
struct EndpointParams {
  std::uint64_t mask = 0;
  const void* address = nullptr;
  int error_mode = 0;
  struct {
    void (*handle)(void*, void*, Status) = nullptr;
    void* argument = nullptr;
  } error;
  void* user = nullptr;
  unsigned flags = 0;
  SocketAddress remote = {};
  void* request = nullptr;
  const char* name = nullptr;
  SocketAddress local = {};
};
struct RequestParams {
  std::uint32_t mask = 0, flags = 0;
  void* request = nullptr;
  void (*done)(void*, Status, void*) = nullptr;
  std::uint64_t datatype = 0;
  void* user = nullptr;
  void* reply = nullptr;
  int memory_type = 0;
  void* received = nullptr;
  void* memory = nullptr;
};
static_assert(sizeof(Params) == 80 && sizeof(WorkerParams) == 200 && sizeof(MemoryParams) == 40 &&
              sizeof(EndpointParams) == 104 && sizeof(RequestParams) == 72);

}  // namespace ucp_abi

[[noreturn]] void no_ucx(const std::string& why) {
  throw Error(Code::unsupported, why, "UCX", "install it (Debian: libucx0), or put through Shoal's own streams");
}

struct Library {
  void* handle = nullptr;
  template <typename Function>
  void find(const char* name, Function& function) {
    function = reinterpret_cast<Function>(dlsym(handle, name));
    if (!function) no_ucx(std::string("libucp.so.0 lacks ") + name);
  }

  Library() {
    // Unless the user says otherwise: our handlers of signals and our allocator stay, and what fails is told by us.
    setenv("UCX_ERROR_SIGNALS", "", 0);
    setenv("UCX_MEM_EVENTS", "no", 0);
    setenv("UCX_LOG_LEVEL", "fatal", 0);
    handle = dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL);
    if (!handle) no_ucx(dlerror());
    find("ucp_init_version", init);
    find("ucp_cleanup", cleanup);
    find("ucp_worker_create", create_worker);
    find("ucp_worker_destroy", destroy_worker);
    find("ucp_worker_progress", progress);
    find("ucp_worker_get_efd", descriptor);
    find("ucp_worker_arm", arm);
    find("ucp_worker_signal", wake);
    find("ucp_worker_fence", fence);
    find("ucp_worker_get_address", address);
    find("ucp_worker_release_address", release_address);
    find("ucp_mem_map", map);
    find("ucp_mem_unmap", unmap);
    find("ucp_rkey_pack", pack);
    find("ucp_rkey_buffer_release", release_key);
    find("ucp_ep_create", connect);
    find("ucp_ep_close_nbx", close);
    find("ucp_ep_rkey_unpack", unpack);
    find("ucp_rkey_destroy", destroy_key);
    find("ucp_put_nbx", put);
    find("ucp_ep_flush_nbx", flush);
    find("ucp_request_free", free_request);
    find("ucs_status_string", words);
  }
  // Stays loaded.
  static Library& get() {
    static Library library;
    return library;
  }

  ucp_abi::Status (*init)(unsigned, unsigned, const ucp_abi::Params*, const void*, void**);
  void (*cleanup)(void*);
  ucp_abi::Status (*create_worker)(void*, const ucp_abi::WorkerParams*, void**);
  void (*destroy_worker)(void*);
  unsigned (*progress)(void*);
  ucp_abi::Status (*descriptor)(void*, int*);
  ucp_abi::Status (*arm)(void*);
  ucp_abi::Status (*wake)(void*);
  ucp_abi::Status (*fence)(void*);
  ucp_abi::Status (*address)(void*, void**, std::size_t*);
  void (*release_address)(void*, void*);
  ucp_abi::Status (*map)(void*, const ucp_abi::MemoryParams*, void**);
  ucp_abi::Status (*unmap)(void*, void*);
  ucp_abi::Status (*pack)(void*, void*, void**, std::size_t*);
  void (*release_key)(void*);
  ucp_abi::Status (*connect)(void*, const ucp_abi::EndpointParams*, void**);
  ucp_abi::Request (*close)(void*, const ucp_abi::RequestParams*);
  ucp_abi::Status (*unpack)(void*, const void*, void**);
  void (*destroy_key)(void*);
  ucp_abi::Request (*put)(void*, const void*, std::size_t, std::uint64_t, void*, const ucp_abi::RequestParams*);
  ucp_abi::Request (*flush)(void*, const ucp_abi::RequestParams*);
  void (*free_request)(void*);
  const char* (*words)(ucp_abi::Status);

  void check(ucp_abi::Status status, const char* call) const {
    if (status != ucp_abi::kOk) no_ucx(std::string(call) + " failed: " + words(status));
  }
};

Ucx::Blob copy_of(const void* bytes, std::size_t size) {
  const auto* const first = static_cast<const std::byte*>(bytes);
  return {first, first + size};
}

}  // namespace

struct Ucx::Worker {
  explicit Worker(Deliver to) : deliver(std::move(to)) {
    const ucp_abi::Params params{.mask = ucp_abi::kFeatures, .features = ucp_abi::kRma | ucp_abi::kWakeup};
    ucp.check(ucp.init(ucp_abi::kMajor, ucp_abi::kMinor, &params, nullptr, &context), "ucp_init");
    const ucp_abi::WorkerParams one_at_a_time{.mask = ucp_abi::kThreadMode, .thread_mode = ucp_abi::kSerialized};
    const auto status = ucp.create_worker(context, &one_at_a_time, &worker);
    if (status != ucp_abi::kOk) ucp.cleanup(context);
    ucp.check(status, "ucp_worker_create");
    if (ucp.descriptor(worker, &descriptor) != ucp_abi::kOk) {
      ucp.destroy_worker(worker);
      ucp.cleanup(context);
      no_ucx("its transports here cannot be waited for");
    }
    thread = std::thread([this] { make_progress(); });
  }

  ~Worker() {
    if (!thread.joinable()) return;  // left
    stop();
    for (const auto& key : keys) ucp.destroy_key(key.key);
    const ucp_abi::RequestParams force{.mask = ucp_abi::kFlags, .flags = ucp_abi::kForce};
    for (const auto& [peer, endpoint] : endpoints) {
      const ucp_abi::Request closing = ucp.close(endpoint, &force);
      if (is_request(closing)) ucp.free_request(closing);
    }
    ucp.destroy_worker(worker);
    unregister();
    ucp.cleanup(context);
    give_up(std::make_shared<const Error>(Code::cancelled, "the regions are closing"));
  }

  // A deliberate leak of the worker and its context. UCX 1.13 aborts a process whose peer drops a socket while one of its messages of the wire-up waits
  // to be sent: wireup_ep.c:241, assertion `wireup_ep->pending_count == 0`, by uct_tcp_ep_set_failed. Without a thread that makes progress we do not meet it
  // ourselves either.
  void leave(const Failure& why) {
    stop();
    unregister();
    give_up(why);
  }

  void stop() {
    {
      const std::lock_guard lock(mutex);
      stopping = true;
    }
    ucp.wake(worker);
    thread.join();
  }
  void unregister() {
    for (auto* const memory : registered) ucp.unmap(context, memory);
  }
  void give_up(const Failure& why) {
    for (auto* const pending : std::exchange(under_way, {})) {
      pending->done(why);
      delete pending;
    }
  }

  struct Pending {
    Worker* worker;
    Rank peer;
    Done done;
  };

  static bool is_request(ucp_abi::Request request) { return reinterpret_cast<std::uintptr_t>(request) - 1 < UINTPTR_MAX - 100; }

  void make_progress() {
    for (;;) {
      {
        const std::lock_guard lock(mutex);
        if (stopping) return;
        while (ucp.progress(worker) > 0) {
        }
        if (ucp.arm(worker) == ucp_abi::kBusy) continue;
      }
      pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
      poll(&wait, 1, -1);
    }
  }

  // By the lock's holder.
  void finish(Pending* pending, ucp_abi::Status status) {
    Failure why;
    if (status != ucp_abi::kOk) {
      why = std::make_shared<const Error>(
          Code::io, "rank " + std::to_string(pending->peer) + " is not reached: " + ucp.words(status), "UCX");
    }
    under_way.erase(pending);
    deliver([done = std::move(pending->done), why] { done(why); });
    delete pending;
  }

  template <class Start>
  void start(Rank peer, Done done, Start begin) {
    {
      const std::lock_guard lock(mutex);
      auto* const pending = new Pending{this, peer, std::move(done)};
      under_way.insert(pending);
      const ucp_abi::RequestParams params{
          .mask = ucp_abi::kCallback | ucp_abi::kUserData, .done = &Worker::ended, .user = pending};
      const ucp_abi::Request request = begin(params);
      if (!is_request(request)) finish(pending, static_cast<ucp_abi::Status>(reinterpret_cast<std::intptr_t>(request)));
    }
    ucp.wake(worker);
  }
  static void ended(void* request, ucp_abi::Status status, void* user) {
    auto* const pending = static_cast<Pending*>(user);
    Worker& self = *pending->worker;
    self.ucp.free_request(request);
    if (!self.stopping) self.finish(pending, status);
  }

  struct Key {
    std::uint64_t begin;
    void* key;
  };

  const Library& ucp = Library::get();
  const Deliver deliver;
  void* context = nullptr;
  int descriptor = -1;
  std::thread thread;

  std::mutex mutex;  // guards all that follows: UCX takes one thread at a time
  void* worker = nullptr;
  bool stopping = false;
  std::map<Rank, void*> endpoints;
  std::vector<Key> keys;
  std::vector<void*> registered;
  std::unordered_set<Pending*> under_way;
};

Ucx::Ucx(Deliver deliver) : worker_(std::make_unique<Worker>(std::move(deliver))) {}
Ucx::~Ucx() = default;
void Ucx::leave(const Failure& why) { worker_->leave(why); }

Ucx::Blob Ucx::address() const {
  const std::lock_guard lock(worker_->mutex);
  void* address = nullptr;
  std::size_t size = 0;
  worker_->ucp.check(worker_->ucp.address(worker_->worker, &address, &size), "ucp_worker_get_address");
  Blob blob = copy_of(address, size);
  worker_->ucp.release_address(worker_->worker, address);
  return blob;
}

Ucx::Blob Ucx::add(std::span<std::byte> memory) {
  const std::lock_guard lock(worker_->mutex);
  const Library& ucp = worker_->ucp;
  const ucp_abi::MemoryParams params{.mask = ucp_abi::kMemory, .address = memory.data(), .length = memory.size()};
  void *registered = nullptr, *key = nullptr;
  std::size_t size = 0;
  ucp.check(ucp.map(worker_->context, &params, &registered), "ucp_mem_map");
  worker_->registered.push_back(registered);
  ucp.check(ucp.pack(worker_->context, registered, &key, &size), "ucp_rkey_pack");
  Blob blob = copy_of(key, size);
  ucp.release_key(key);
  return blob;
}

bool Ucx::connect(Rank peer, const Blob& address, Done joined) {
  // Whoever waits hears of a failure from the request; the job, from its own connections.
  const auto ignored = [](void*, void*, ucp_abi::Status) {};
  const ucp_abi::EndpointParams params{.mask = ucp_abi::kAddress | ucp_abi::kErrorMode | ucp_abi::kErrorHandler,
                                       .address = address.data(),
                                       .error_mode = ucp_abi::kErrorsOfPeers,
                                       .error = {.handle = ignored}};
  {
    const std::lock_guard lock(worker_->mutex);
    void* endpoint = nullptr;
    if (worker_->ucp.connect(worker_->worker, &params, &endpoint) != ucp_abi::kOk) return false;
    worker_->endpoints[peer] = endpoint;
  }
  flush(peer, std::move(joined));  // ends behind the wire-up of all lanes
  return true;
}

std::size_t Ucx::know(Rank peer, std::uint64_t begin, const Blob& key) {
  const std::lock_guard lock(worker_->mutex);
  void* unpacked = nullptr;
  worker_->ucp.check(worker_->ucp.unpack(worker_->endpoints.at(peer), key.data(), &unpacked), "ucp_ep_rkey_unpack");
  worker_->keys.push_back({begin, unpacked});
  return worker_->keys.size() - 1;
}

void Ucx::put(Rank peer, std::size_t memory, std::uint64_t offset, std::span<const std::byte> bytes, Done done) {
  worker_->start(peer, std::move(done), [&](const ucp_abi::RequestParams& params) {
    const auto [begin, key] = worker_->keys[memory];
    worker_->ucp.fence(worker_->worker);  // puts into one place take effect in their order
    return worker_->ucp.put(worker_->endpoints.at(peer), bytes.data(), bytes.size(), begin + offset, key, &params);
  });
}

void Ucx::flush(Rank peer, Done done) {
  worker_->start(peer, std::move(done), [&](const ucp_abi::RequestParams& params) {
    return worker_->ucp.flush(worker_->endpoints.at(peer), &params);
  });
}

}  // namespace shoal::net
