// The job's secret, from the environment.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "shoal/core/error.h"
#include "shoal/net/environment.h"
#include "shoal/net/job.h"

namespace shoal::net {
namespace {

Error unreadable(const std::string& path) {
  return Error(Code::invalid_argument, "cannot read " + path + ": " + std::strerror(errno), "SHOAL_SECRET_FILE");
}

}  // namespace

std::optional<std::string> find_secret() {
  if (auto secret = variable("SHOAL_SECRET")) return secret;
  const auto path = variable("SHOAL_SECRET_FILE");
  if (!path) return {};
  struct stat status {};
  if (stat(path->c_str(), &status) != 0) throw unreadable(*path);
  // First, lest the advice below be followed for /tmp; and a pipe is empty for all but one member, or never opens.
  if (!S_ISREG(status.st_mode)) throw Error(Code::invalid_argument, *path + " is no plain file", "SHOAL_SECRET_FILE");
  std::ifstream file(*path, std::ios::binary);
  if (!file) throw unreadable(*path);
  if (status.st_mode & 077) {
    throw Error(Code::invalid_argument, *path + " can be read by others", "SHOAL_SECRET_FILE", "chmod 600 " + *path);
  }
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    throw Error(Code::invalid_argument, *path + " belongs to another user, who can change it", "SHOAL_SECRET_FILE", "name a file of your own");
  }
  constexpr std::size_t kMaxSecret = 4096;
  std::string secret(kMaxSecret + 1, '\0');
  file.read(secret.data(), static_cast<std::streamsize>(secret.size()));
  secret.resize(static_cast<std::size_t>(file.gcount()));
  if (secret.size() > kMaxSecret) {
    throw Error(Code::invalid_argument, *path + " has more than " + std::to_string(kMaxSecret) + " bytes", "SHOAL_SECRET_FILE",
                "name the file that holds the secret: 64 random characters are plenty");
  }
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.empty()) throw Error(Code::invalid_argument, *path + " is empty", "SHOAL_SECRET_FILE");
  return secret;
}

}  // namespace shoal::net
