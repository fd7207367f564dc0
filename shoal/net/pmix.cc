#include "shoal/net/pmix.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>
#include <thread>

#include "shoal/core/error.h"
#include "shoal/core/text.h"

namespace shoal::net {
namespace {

// The few declarations of the PMIx standard's C binding that we need (pmix_common.h, pmix.h), the same in versions 3 to 5.
namespace abi {

using status = int;
constexpr status kSuccess = 0, kTimeout = -24, kNotFound = -46;
constexpr std::uint32_t kWildcard = UINT32_MAX - 1;
constexpr std::uint16_t kInt = 6, kString = 3, kUint32 = 14;
constexpr std::uint8_t kGlobal = 3;

struct Process {
  char space[256];
  std::uint32_t rank;
};
struct Value {
  std::uint16_t type;
  union {
    char* text;
    int integer;
    std::uint32_t number;
    std::uint64_t other[3];  // the largest member
  } data;
};
struct Info {
  char key[512];
  std::uint32_t flags;
  Value value;
};
static_assert(sizeof(Process) == 260 && sizeof(Value) == 32 && sizeof(Info) == 552);

using Init = status (*)(Process*, Info*, std::size_t);
using Finalize = status (*)(const Info*, std::size_t);
using Put = status (*)(std::uint8_t, const char*, Value*);
using Commit = status (*)();
using Get = status (*)(const Process*, const char*, const Info*, std::size_t, Value**);
using Words = const char* (*)(status);

}  // namespace abi

constexpr const char* kFile = "libpmix.so.2";

[[noreturn]] void unusable(const std::string& why) {
  throw Error(Code::unsupported, "this process was started through PMIx (PMIX_RANK is set), but " + why, "PMIx",
              "install the launcher's libpmix (Debian: libpmix2), or start `env -u PMIX_RANK python ...` with SHOAL_COORD=HOST:PORT, HOST "
              "being where rank 0 runs");
}

}  // namespace

struct Pmix::Library {
  void* handle = nullptr;
  abi::Finalize finalize = nullptr;
  abi::Put put = nullptr;
  abi::Commit commit = nullptr;
  abi::Get get = nullptr;
  abi::Words words = nullptr;
  abi::Process self{};

  template <typename Function>
  Function find(const char* name) const {
    void* const found = dlsym(handle, name);
    if (!found) unusable(std::string(kFile) + " lacks " + name);
    return reinterpret_cast<Function>(found);
  }
  void check(abi::status status, const char* call) const {
    if (status != abi::kSuccess) throw Error(Code::io, std::string(call) + " failed: " + words(status), "PMIx");
  }
};

Pmix::Pmix() : library_(std::make_unique<Library>()) {
  library_->handle = dlopen(kFile, RTLD_NOW | RTLD_GLOBAL);  // global: its plug-ins use its symbols
  if (!library_->handle) unusable(std::string(dlerror()));
  const auto init = library_->find<abi::Init>("PMIx_Init");
  library_->finalize = library_->find<abi::Finalize>("PMIx_Finalize");
  library_->put = library_->find<abi::Put>("PMIx_Put");
  library_->commit = library_->find<abi::Commit>("PMIx_Commit");
  library_->get = library_->find<abi::Get>("PMIx_Get");
  library_->words = library_->find<abi::Words>("PMIx_Error_string");
  const abi::status status = init(&library_->self, nullptr, 0);
  if (status != abi::kSuccess) unusable(std::string("its launcher does not answer: ") + library_->words(status));
}

// The library stays loaded: it has threads of its own.
Pmix::~Pmix() { library_->finalize(nullptr, 0); }

Rank Pmix::size() const {
  abi::Process job = library_->self;
  job.rank = abi::kWildcard;
  abi::Value* value = nullptr;
  library_->check(library_->get(&job, "pmix.job.size", nullptr, 0, &value), "PMIx_Get(pmix.job.size)");
  const bool known = value->type == abi::kUint32;
  const Rank size = known ? value->data.number : 0;
  std::free(value);
  if (!known || size == 0) throw Error(Code::io, "the launcher does not say how many processes it has started", "PMIx");
  return size;
}

void Pmix::put(const std::string& key, const std::string& value) {
  std::string text = value;
  abi::Value told{};
  told.type = abi::kString;
  told.data.text = text.data();
  library_->check(library_->put(abi::kGlobal, key.c_str(), &told), "PMIx_Put");
  library_->check(library_->commit(), "PMIx_Commit");
}

// Some servers hold a question until it can be answered; others (Slurm's, about a rank on another host) answer at once that
// there is nothing yet.
std::string Pmix::get(Rank rank, const std::string& key, Nanoseconds patience) {
  constexpr auto pause = std::chrono::milliseconds(20);
  abi::Process from = library_->self;
  from.rank = rank;
  abi::Info limit{};
  std::strcpy(limit.key, "pmix.timeout");
  limit.value.type = abi::kInt;
  limit.value.data.integer = std::max(1, static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(patience).count()));
  const Instant deadline = steady_now() + patience;
  abi::Value* value = nullptr;
  for (;; std::this_thread::sleep_for(pause)) {
    const abi::status status = library_->get(&from, key.c_str(), &limit, 1, &value);
    if (status == abi::kSuccess) break;
    if (status != abi::kTimeout && status != abi::kNotFound) library_->check(status, "PMIx_Get");
    if (steady_now() < deadline) continue;
    throw Error(Code::peer_lost, show_ranks(std::span(&rank, 1)) + " did not appear within " + show_seconds(Seconds(patience).count()),
                "join", "start every member, or look at the log of that one");
  }
  if (value->type != abi::kString || !value->data.text) throw Error(Code::io, key + " is no text", "PMIx");
  std::string text = value->data.text;
  std::free(value->data.text);
  std::free(value);
  return text;
}

}  // namespace shoal::net
