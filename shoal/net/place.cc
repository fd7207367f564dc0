// The environment: where this process stands in a run, and the job's secret.
#include <sys/stat.h>

#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "shoal/net/coordinator.h"
#include "shoal/net/job.h"

namespace shoal::net {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  if (!value || !*value) return {};
  return value;
}

std::uint64_t number(const char* name, const std::string& text, std::uint64_t limit) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > limit) {
    throw Error(Code::invalid_argument, "\"" + text + "\" is not a number from 0 to " + std::to_string(limit), name);
  }
  return value;
}

constexpr std::uint64_t kMaxSize = 65536;

// Rank and size under their names in this launcher; both or neither.
void read_rank_and_size(const char* rank_name, const char* size_name, Place& place) {
  const auto rank = variable(rank_name), size = variable(size_name);
  if (!rank || !size) {
    const char* missing = rank ? size_name : rank_name;
    throw Error(Code::invalid_argument, std::string("not set, but ") + (rank ? rank_name : size_name) + " is", missing,
                "a launcher sets both; unset both to run alone");
  }
  place.size = static_cast<Rank>(number(size_name, *size, kMaxSize));
  place.rank = static_cast<Rank>(number(rank_name, *rank, kMaxSize));
  if (place.size == 0) throw Error(Code::invalid_argument, "a job has at least one member", size_name);
  if (place.rank >= place.size) {
    throw Error(Code::invalid_argument, "rank " + *rank + " is not below the size " + *size, rank_name);
  }
}

}  // namespace

Place find_place() {
  Place place;
  if (variable("SHOAL_RANK") || variable("SHOAL_SIZE")) {
    place.launcher = Place::Launcher::shoal;
    read_rank_and_size("SHOAL_RANK", "SHOAL_SIZE", place);
    if (const auto generation = variable("SHOAL_GENERATION")) {
      place.generation = number("SHOAL_GENERATION", *generation, UINT64_MAX);
    }
    place.job = variable("SHOAL_JOB").value_or("shoal");
    place.coordinator = variable("SHOAL_COORD").value_or("");
    if (place.size > 1 && place.coordinator.empty()) {
      throw Error(Code::invalid_argument, "not set, but SHOAL_SIZE is " + std::to_string(place.size), "SHOAL_COORD",
                  "set it to the coordinator's host:port, or start with `shoal run`");
    }
    return place;
  }
  if (variable("RANK") || variable("WORLD_SIZE")) {
    place.launcher = Place::Launcher::torchrun;
    read_rank_and_size("RANK", "WORLD_SIZE", place);
    if (const auto restarts = variable("TORCHELASTIC_RESTART_COUNT")) {
      place.generation = number("TORCHELASTIC_RESTART_COUNT", *restarts, UINT64_MAX);
    }
    place.job = variable("TORCHELASTIC_RUN_ID").value_or("torchrun");
    return place;
  }
  place.job = "alone";
  return place;
}

std::optional<std::string> find_secret() {
  if (auto secret = variable("SHOAL_SECRET")) return secret;
  const auto path = variable("SHOAL_SECRET_FILE");
  if (!path) return {};
  struct stat status {};
  std::ifstream file(*path, std::ios::binary);
  if (!file || stat(path->c_str(), &status) != 0) {
    throw Error(Code::invalid_argument, "cannot read " + *path, "SHOAL_SECRET_FILE");
  }
  if (status.st_mode & 077) {
    throw Error(Code::invalid_argument, *path + " can be read by others", "SHOAL_SECRET_FILE", "chmod 600 " + *path);
  }
  constexpr std::size_t kMaxSecret = 4096;
  std::string secret(kMaxSecret, '\0');
  file.read(secret.data(), static_cast<std::streamsize>(secret.size()));
  secret.resize(static_cast<std::size_t>(file.gcount()));
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) throw Error(Code::invalid_argument, *path + " is empty", "SHOAL_SECRET_FILE");
  return secret;
}

std::unique_ptr<Job> join(const JoinOptions& options) {
  const Place place = find_place();
  if (place.launcher == Place::Launcher::torchrun && place.size > 1) {
    throw Error(Code::unsupported, "started by torchrun, whose store only Python can hand over", "join",
                "call shoal.init() in Python, or start with `shoal run`");
  }
  struct Nowhere final : Rendezvous {  // a member alone meets nobody
    void put(const std::string&, const std::string&) override {}
    std::string get(const std::string& key, Nanoseconds) override { throw Error(Code::internal, "alone, yet asked for " + key); }
  };
  if (place.size == 1) {
    Nowhere nowhere;
    return join(place, nowhere, options);
  }
  CoordinatorClient client(find_secret().value_or(""), place.coordinator, options.patience);
  return join(place, client, options);
}

}  // namespace shoal::net
