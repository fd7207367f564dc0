#include "app/joining.h"

#include <unistd.h>

#include <algorithm>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/run.h"
#include "shoal/core/aside.h"
#include "shoal/core/text.h"
#include "shoal/observe/run_folder.h"

namespace shoal::app {

namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace {

constexpr std::size_t kLongest = 64 * 1024;  // bytes of a request, or an answer
constexpr Nanoseconds kLookForAnswer = std::chrono::milliseconds(100);

fs::path desk_of(const fs::path& run) { return run / "join"; }
fs::path answer_to(fs::path request) { return request.replace_extension(".answer"); }

Json read(const fs::path& file) { return Json::parse(observe::RunFolder::open(file.parent_path()).read(file.filename(), kLongest).value_or(""), nullptr, false); }

}  // namespace

Joining::Joining(const fs::path& run) : folder_(desk_of(run)) { fs::create_directory(folder_); }
Joining::~Joining() {
  std::error_code stays;
  fs::remove_all(folder_, stays);
}

std::optional<JoinRequest> Joining::look() const {
  std::vector<fs::path> files;
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator(folder_, gone)) {
    if (entry.path().extension() == ".request" && !fs::exists(answer_to(entry.path()))) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  for (const fs::path& file : files) {
    const Json said = read(file);
    if (said.is_object() && said["members"].is_number_unsigned() && said["hosts"].is_string()) return JoinRequest{said["members"], said["hosts"], file};
  }
  return {};
}

void Joining::answer(const JoinRequest& request, const std::string& ranks) const { write_aside(answer_to(request.file), Json{{"ranks", ranks}}.dump()); }

void Joining::refuse(const JoinRequest& request, const Error& why) const {
  write_aside(answer_to(request.file), Json{{"code", why.code()}, {"fact", why.fact()}, {"where", why.where()}, {"hint", why.hint()}}.dump());
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

bool takes_members(const fs::path& run) { return fs::is_directory(desk_of(run)); }

std::string ask_to_join(const fs::path& run, const JoinRequest& request, Nanoseconds patience) {
  if (!takes_members(run)) {
    throw Error(Code::invalid_argument, "takes no more members: it is over, or a lost one would not be replaced in it", run.string(), "shoal run --on-peer-lost rejoin");
  }
  const fs::path file = desk_of(run) / fmt::format("{}.request", ::getpid());
  write_aside(file, Json{{"members", request.members}, {"hosts", request.hosts}}.dump());
  const Instant deadline = steady_now() + patience;
  while (!fs::exists(answer_to(file)) && takes_members(run) && steady_now() < deadline) std::this_thread::sleep_for(kLookForAnswer);
  const Json said = fs::exists(answer_to(file)) ? read(answer_to(file)) : Json();
  std::error_code gone;
  fs::remove(file, gone);
  fs::remove(answer_to(file), gone);
  if (said.is_object() && said.contains("ranks")) return said["ranks"];
  if (said.is_object()) throw Error(said.value("code", Code::internal), said.value("fact", ""), said.value("where", ""), said.value("hint", ""));
  if (!takes_members(run)) throw Error(Code::invalid_argument, "the run is over", run.string());
  throw Error(Code::timeout, "its members take nobody beside them at the moment, and were asked for " + show_seconds(Seconds(patience).count()), run.string(),
              "those with tables do, in shoal.again(); SHOAL_JOIN_TIMEOUT sets the time");
}

}  // namespace shoal::app
