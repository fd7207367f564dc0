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
#include <string>

namespace shoal::app {
namespace {

// /proc/PID/stat is "pid (name) state parent ..."; the name may contain anything, so parse behind its end.
bool read_process(pid_t pid, Process& process) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(file, text, '\0')) return false;
  const auto end = text.rfind(')');
  process.pid = pid;
  return end != std::string::npos &&
         std::sscanf(text.c_str() + end + 1, " %c %d", &process.state, &process.parent) == 2;
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

void signal_group(pid_t leader, int signal) {
  ::kill(-leader, signal);
  if (signal != SIGKILL) ::kill(-leader, SIGCONT);
}

}  // namespace shoal::app
