#include "app/processes.h"

#include <dirent.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <memory>
#include <set>
#include <sstream>
#include <string>

namespace shoal::app {
namespace {

// As far as there is any: a process may end while its file is read, and then reading fails.
std::string read_whole(pid_t pid, const char* what) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/" + what, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // an iterator of the buffer would throw
  return text.str();
}

// /proc/PID/stat is "pid (name) state parent group ..."; the name may contain anything, so parse behind its end.
bool read_process(pid_t pid, Process& process) {
  const std::string text = read_whole(pid, "stat");
  const auto end = text.rfind(')');
  process.pid = pid;
  return end != std::string::npos &&
         std::sscanf(text.c_str() + end + 1, " %c %d %d", &process.state, &process.parent, &process.group) == 3;
}

std::vector<Process> all_processes() {
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (!folder) return all;
  while (const dirent* entry = ::readdir(folder.get())) {
    Process process;
    const pid_t pid = std::atoi(entry->d_name);
    if (pid > 0 && read_process(pid, process)) all.push_back(process);
  }
  return all;
}

}  // namespace

void adopt_orphans() { ::prctl(PR_SET_CHILD_SUBREAPER, 1); }

std::vector<Process> descendants() {
  const auto all = all_processes();
  std::set<pid_t> known{::getpid()};
  std::vector<Process> found;
  for (bool grew = true; grew;) {  // a generation a round
    grew = false;
    for (const Process& process : all) {
      if (known.contains(process.parent) && known.insert(process.pid).second) {
        found.push_back(process);
        grew = true;
      }
    }
  }
  return found;
}

std::vector<pid_t> stopped_descendants() {
  std::vector<pid_t> stopped;
  for (const Process& process : descendants()) {
    if (process.state == 'T' || process.state == 't') stopped.push_back(process.pid);
  }
  return stopped;
}

std::vector<pid_t> processes_with(const std::string& variable) {
  const std::string wanted = '\0' + variable + '\0';  // as one of a list of C strings
  std::vector<pid_t> found;
  for (const Process& process : all_processes()) {
    const std::string environment = '\0' + read_whole(process.pid, "environ");
    if (process.pid != ::getpid() && environment.find(wanted) != std::string::npos) found.push_back(process.pid);
  }
  return found;
}

std::string name_of(pid_t pid) {
  const std::string line = read_whole(pid, "comm");
  return line.substr(0, line.find('\n'));
}

bool catches(pid_t pid, int signal) {
  const std::string status = read_whole(pid, "status");
  const auto at = status.find("\nSigCgt:");
  return at != std::string::npos && (std::strtoull(status.c_str() + at + 8, nullptr, 16) >> (signal - 1) & 1);
}

void tell_listeners(int signal) {
  for (const Process& process : descendants()) {
    if (catches(process.pid, signal)) ::kill(process.pid, signal);
  }
}

void Ending::tell_group(pid_t leader, int signal) {
  for (const Process& process : descendants()) {
    if (process.group == leader) told_.insert(process.pid);
  }
  ::kill(-leader, signal);  // whoever joined it meanwhile, too
  if (signal != SIGKILL) ::kill(-leader, SIGCONT);
}

bool Ending::tell_all(int signal, pid_t spared) {
  bool living = false;
  for (const Process& process : descendants()) {
    if (process.state == 'Z' || process.pid == spared) continue;
    living = true;
    if (signal != SIGKILL && !told_.insert(process.pid).second) continue;
    ::kill(process.pid, signal);
    ::kill(process.pid, SIGCONT);
  }
  return living;
}

}  // namespace shoal::app
