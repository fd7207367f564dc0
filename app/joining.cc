#include "app/joining.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/run.h"
#include "shoal/core/aside.h"
#include "shoal/core/random.h"
#include "shoal/core/text.h"
#include "shoal/observe/run_folder.h"

namespace shoal::app {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kLongest = 4096;  // bytes of a request, or an answer
constexpr Nanoseconds kLookForAnswer = std::chrono::milliseconds(100);

fs::path desk_of(const fs::path& run) { return run / "join"; }
fs::path lock_of(const fs::path& run) { return desk_of(run) / "launcher"; }
fs::path answer_to(fs::path request) { return request.replace_extension(".answer"); }

// A file that is there as long as this descriptor, for whoever asks is_held(); none, with errno, where it cannot be.
net::Descriptor hold(const fs::path& file) {
  net::Descriptor fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (fd && ::flock(fd.get(), LOCK_EX) != 0) fd.reset();
  return fd;
}
bool is_held(const fs::path& file) {
  const net::Descriptor fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
  struct stat about {};
  return fd && ::fstat(fd.get(), &about) == 0 && S_ISREG(about.st_mode) && ::flock(fd.get(), LOCK_SH | LOCK_NB) != 0;
}

// Of a file that others may take away meanwhile.
Json read(const fs::path& file) try {
  return Json::parse(observe::RunFolder::open(file.parent_path()).read(file.filename(), kLongest).value_or(""), nullptr, false);
} catch (const Error&) {
  return {};
}

// Nobody reads it where that fails.
void write_answer(const JoinRequest& request, const Json& text) try {
  write_aside(answer_to(request.file), text.dump());
} catch (const Error&) {
}

}  // namespace

Joining::Joining(const fs::path& run) : folder_(desk_of(run)), lock_((fs::create_directory(folder_), hold(lock_of(run)))) {
  if (!lock_) throw Error(Code::io, std::string("cannot write: ") + std::strerror(errno), lock_of(run).string());
}
Joining::~Joining() {
  std::error_code stays;
  fs::remove_all(folder_, stays);
}

std::optional<JoinRequest> Joining::look() const {
  std::vector<fs::path> files;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(folder_, gone)) {
    const fs::path& file = entry.path();
    if (file.extension() == ".request" && is_held(file) && !fs::exists(answer_to(file), gone)) files.push_back(file);
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const Json said = read(file);
    const bool is_one = said.is_object() && said.contains("members") && said["members"].is_number_unsigned() && said.contains("hosts") && said["hosts"].is_string();
    const std::uint64_t members = is_one ? said["members"].get<std::uint64_t>() : 0;
    if (members >= 1 && members <= most_members) return JoinRequest{static_cast<unsigned>(members), said["hosts"], file};
  }
  return {};
}

bool Joining::is_withdrawn(const JoinRequest& request) const { return !is_held(request.file); }

void Joining::answer(const JoinRequest& request, const std::string& ranks) const { write_answer(request, {{"ranks", ranks}}); }

void Joining::refuse(const JoinRequest& request, const Error& why) const {
  write_answer(request, {{"code", why.code()}, {"fact", why.fact()}, {"where", why.where()}, {"hint", why.hint()}});
}

Launch with_more(Launch what, const JoinRequest& request) {
  what.members += request.members;
  if (what.members > most_members) throw Error(Code::invalid_argument, fmt::format("the run would have {} members, and {} is the most", what.members, most_members), "-n");
  if (what.far.empty() && !request.hosts.empty()) throw Error(Code::invalid_argument, "this run's members meet on one machine", "--hosts", "leave it out");
  if (!what.far.empty()) {
    if (request.hosts.empty()) throw Error(Code::invalid_argument, "this run's members are on other hosts", "--hosts", "say on which the others are to be");
    for (const FarHost& host : parse_hosts(request.hosts)) what.far.insert(what.far.end(), host.slots, host);
    if (what.far.size() < what.members) {
      throw Error(Code::invalid_argument, fmt::format("{} do not fit on {}", show_count(request.members, "members"), request.hosts), "--hosts", "say how many a host takes, as in a:4,b:4");
    }
    what.far.resize(what.members);
  }
  if (what.lab && what.lab->hosts.size() < what.members) {
    throw Error(Code::invalid_argument, fmt::format("its lab has {} hosts for {} members", what.lab->hosts.size(), what.members), "-n", "begin with a larger lab");
  }
  return what;
}

bool takes_members(const fs::path& run) { return is_held(lock_of(run)); }

std::string ask_to_join(const fs::path& run, const JoinRequest& request, Nanoseconds patience) {
  if (!takes_members(run)) {
    throw Error(Code::invalid_argument, "takes no more members: it is over, or a lost one would not be replaced in it", run.string(), "shoal run --on-peer-lost rejoin");
  }
  // Held before it is found under its name.
  const fs::path name = desk_of(run) / random_hex(8), file = fs::path(name).replace_extension(".request");
  const net::Descriptor held = hold(name);
  if (!held) throw Error(Code::invalid_argument, std::string("its launcher cannot be asked: ") + std::strerror(errno), run.string(), "as its user");
  const std::string text = Json{{"members", request.members}, {"hosts", request.hosts}}.dump();
  std::error_code failed;
  if (::write(held.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) || (fs::rename(name, file, failed), failed)) {
    throw Error(Code::io, std::string("cannot write: ") + std::strerror(errno), file.string());
  }
  const Instant deadline = steady_now() + patience;
  std::error_code gone;
  while (!fs::exists(answer_to(file), gone) && takes_members(run) && steady_now() < deadline) std::this_thread::sleep_for(kLookForAnswer);
  const Json said = read(answer_to(file));
  fs::remove(file, gone);
  fs::remove(answer_to(file), gone);
  if (said.is_object() && said.contains("ranks")) return said["ranks"];
  if (said.is_object()) throw Error(said.value("code", Code::internal), said.value("fact", ""), said.value("where", ""), said.value("hint", ""));
  if (!takes_members(run)) throw Error(Code::invalid_argument, "the run is over", run.string());
  throw Error(Code::timeout, "it could not take them for " + show_seconds(Seconds(patience).count()) + ", and is asked no more", run.string(),
              "members with tables take others while they are in shoal.again(); SHOAL_JOIN_TIMEOUT sets the time");
}

}  // namespace shoal::app
