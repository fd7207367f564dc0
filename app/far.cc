#include "app/far.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "shoal/core/error.h"

namespace shoal::app {
namespace {

[[noreturn]] void refuse_far(const std::string& text) {
  throw Error(Code::invalid_argument, fmt::format("\"{}\" is not a list of hosts", text), "--hosts", "for example a,b:2,user@c");
}

FarHost parse_host(const std::string& text, const std::string& all) {
  FarHost host{text, 1};
  const auto bracket = text.rfind(']');
  const auto colon = text.find(':', bracket == std::string::npos ? 0 : bracket);
  if (colon != std::string::npos) {
    const char* const end = text.data() + text.size();
    const auto read = std::from_chars(text.data() + colon + 1, end, host.slots);
    if (read.ec != std::errc{} || read.ptr != end || host.slots == 0 || host.slots > 1024) refuse_far(all);
    host.name = text.substr(0, colon);
  }
  if (host.name.size() > 2 && host.name.front() == '[' && host.name.back() == ']') host.name = host.name.substr(1, host.name.size() - 2);
  if (host.name.empty() || host.name.front() == '-' || host.name.find_first_of(" []") != std::string::npos) refuse_far(all);
  return host;
}

void append(std::string& message, std::string_view field) {
  message += field;
  message += '\0';
}

}  // namespace

std::vector<FarHost> parse_hosts(const std::string& text) {
  std::vector<FarHost> hosts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    hosts.push_back(parse_host(text.substr(begin, end - begin), text));
    begin = end + 1;
  }
  return hosts;
}

Environment environment_to_carry() {
  constexpr std::string_view own[] = {"HOME", "USER", "LOGNAME", "SHELL", "MAIL", "TMPDIR", "HOSTNAME", "PWD", "OLDPWD", "SHLVL", "_",
                                      "DISPLAY", "WAYLAND_DISPLAY", "TERM"};
  constexpr std::string_view own_families[] = {"SSH_", "XDG_", "DBUS_", "SUDO_"};
  Environment carried;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const auto equals = text.find('=');
    if (equals == std::string_view::npos) continue;
    const std::string_view name = text.substr(0, equals);
    if (std::find(std::begin(own), std::end(own), name) != std::end(own)) continue;
    if (std::any_of(std::begin(own_families), std::end(own_families), [&](std::string_view family) { return name.starts_with(family); })) {
      continue;
    }
    carried.emplace_back(name, text.substr(equals + 1));
  }
  return carried;
}

Talking start_far(const FarHost& host, const Assignment& assignment) {
  std::string fields;
  append(fields, assignment.folder);
  append(fields, std::to_string(assignment.slots));
  append(fields, std::to_string(assignment.environment.size()));
  for (const auto& [name, value] : assignment.environment) append(fields, name + "=" + value);
  for (const auto& word : assignment.command) append(fields, word);
  const std::string message = std::to_string(fields.size()) + "\n" + fields;

  const std::string here = std::filesystem::read_symlink("/proc/self/exe");
  if (here.find('\'') != std::string::npos) throw Error(Code::unsupported, "a program in a folder with a quote in its name", here);
  // Never a question: nobody could answer it. A connection that is silent for 15 s is lost.
  Talking talking = start_talking(find_program("ssh"), {"ssh", "-T", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
                                                        "-o", "ServerAliveCountMax=3", "--", host.name, "'" + here + "' far-member"});
  ::fcntl(talking.in.get(), F_SETPIPE_SZ, static_cast<int>(std::min<std::size_t>(std::max<std::size_t>(message.size() + 4096, 65536), 1 << 20)));
  std::string_view rest = message;
  for (pollfd ready{talking.in.get(), POLLOUT, 0}; !rest.empty();) {
    const ssize_t wrote = ::write(talking.in.get(), rest.data(), rest.size());
    if (wrote > 0) rest.remove_prefix(static_cast<std::size_t>(wrote));
    if (wrote < 0 && errno != EAGAIN && errno != EINTR) break;   // it has ended, and says why
    if (!rest.empty() && ::poll(&ready, 1, 10'000) == 0) throw Error(Code::io, "does not take what it is to do", "ssh " + host.name);
  }
  return talking;
}

}  // namespace shoal::app
