// Members of a benchmark: forked processes, each optionally inside a network namespace, that meet at a coordinator of the
// parent. The parent's coordinator must be reachable from the namespaces, so with namespaces it is forked into the first.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "shoal/core/error.h"
#include "shoal/net/coordinator.h"
#include "shoal/net/tcp.h"

namespace shoal::bench {

struct Team {
  net::Rank size = 2;
  std::vector<std::string> namespaces;   // by rank; empty: all here, over the loopback
  std::string coordinator = "127.0.0.1:0";  // where rank 0 can listen and all can connect
};

inline void enter(const std::string& name) {
  const int fd = open(("/var/run/netns/" + name).c_str(), O_RDONLY);
  if (fd < 0 || setns(fd, CLONE_NEWNET) != 0) {
    std::fprintf(stderr, "cannot enter network namespace %s\n", name.c_str());
    _exit(1);
  }
  close(fd);
}

// Forks one process a member and runs `body` in each; the exit status is 0 if every member's was.
inline int run(const Team& team, const std::function<void(net::Job&)>& body) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  std::vector<pid_t> members;
  // One more process holds the coordinator: it must live in a namespace of its own choosing, and outlive all members.
  const pid_t board = fork();
  if (board == 0) {
    if (!team.namespaces.empty()) enter(team.namespaces[0]);
    net::Coordinator coordinator("bench", team.coordinator);
    const std::string address = coordinator.address() + "\n";
    for (net::Rank rank = 0; rank < team.size; ++rank) {
      if (write(ends[1], address.data(), address.size()) < 0) _exit(1);
    }
    pause();
    _exit(0);
  }
  std::string address;
  for (char c; read(ends[0], &c, 1) == 1 && c != '\n';) address += c;
  for (net::Rank rank = 0; rank < team.size; ++rank) {
    const pid_t member = fork();
    if (member != 0) {
      members.push_back(member);
      continue;
    }
    if (!team.namespaces.empty()) enter(team.namespaces.at(rank));
    int status = 0;
    try {
      net::Place place;
      place.rank = rank;
      place.size = team.size;
      place.job = "bench";
      net::CoordinatorClient client("bench", address);
      const auto job = net::join_tcp(place, client, "bench/", "bench", {});
      body(*job);
    } catch (const Error& error) {
      std::fprintf(stderr, "rank %u: %s\n", rank, error.what());
      status = 1;
    }
    std::fflush(stdout);
    _exit(status);
  }
  int worst = 0;
  for (const pid_t member : members) {
    int status = 0;
    waitpid(member, &status, 0);
    if (status != 0) worst = 1;
  }
  kill(board, SIGTERM);
  waitpid(board, nullptr, 0);
  return worst;
}

}  // namespace shoal::bench
