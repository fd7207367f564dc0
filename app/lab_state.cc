#include "app/lab_state.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "shoal/core/aside.h"
#include "shoal/core/error.h"
#include "shoal/net/descriptor.h"

namespace shoal::app {
namespace {

namespace fs = std::filesystem;

fs::path folder() {
  if (::geteuid() == 0) return "/run/shoal/labs";
  if (const char* runtime = std::getenv("XDG_RUNTIME_DIR")) return fs::path(runtime) / "shoal/labs";
  return fs::temp_directory_path() / ("shoal-labs-" + std::to_string(::geteuid()));
}
fs::path file_of(const std::string& name) { return folder() / (name + ".json"); }

Lab read_lab(const fs::path& file) {
  std::ifstream input(file);
  const auto json = nlohmann::json::parse(input);
  Lab lab{json.at("name"), {}};
  for (const auto& host : json.at("hosts")) {
    lab.hosts.push_back(
        {host.at("name"), host.at("network"), host.at("address"), host.at("up"), host.at("down")});
  }
  return lab;
}

}  // namespace

bool claim_lab(const std::string& name) {
  std::error_code error;
  fs::create_directories(folder(), error);
  const fs::path file = file_of(name);
  const net::Descriptor claimed(::open(file.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (claimed) return true;
  if (errno == EEXIST) return false;
  throw Error(Code::io, std::string("cannot write: ") + std::strerror(errno), file.string());
}

void save_lab(const Lab& lab) {
  nlohmann::json hosts = nlohmann::json::array();
  for (const auto& host : lab.hosts) {
    hosts.push_back({{"name", host.name},
                     {"network", host.network},
                     {"address", host.address},
                     {"up", host.up},
                     {"down", host.down}});
  }
  write_aside(file_of(lab.name), nlohmann::json{{"name", lab.name}, {"hosts", hosts}}.dump(1) + "\n");
}

bool forget_lab(const std::string& name) { return fs::remove(file_of(name)); }

Lab find_lab(const std::string& name) {
  const fs::path file = file_of(name);
  if (fs::exists(file)) {
    try {
      return read_lab(file);
    } catch (const nlohmann::json::exception&) {
      throw Error(Code::invalid_argument, "lab " + name + " is half made", {},
                  "shoal lab down " + name + " removes what there is");
    }
  }
  throw Error(Code::invalid_argument, "there is no lab " + name, {},
              "shoal lab list; shoal lab up -n 4 --name " + name);
}

std::vector<Lab> list_labs() {
  std::vector<Lab> labs;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder(), error)) {
    if (entry.path().extension() != ".json") continue;
    try {
      labs.push_back(read_lab(entry.path()));
    } catch (const nlohmann::json::exception&) {  // being made, or half made: `down` removes it by name
      labs.push_back({entry.path().stem(), {}});
    }
  }
  std::sort(labs.begin(), labs.end(), [](const Lab& a, const Lab& b) { return a.name < b.name; });
  return labs;
}

}  // namespace shoal::app
