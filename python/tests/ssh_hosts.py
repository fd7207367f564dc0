"""Hosts with a real sshd each: network namespaces of `shoal lab`, keys and configuration in one folder.

    with SshHosts(folder, 3) as hosts:
        hosts.on(0, ["shoal", "run", "--hosts", "host0,host1,host2", "--", ...])     # from the first host

In front of PATH stands an `ssh` that reads this folder's configuration, as ~/.ssh/config would be read. Hosts know each other's names by
ssh only; named() gives a command an /etc/hosts of its own.
"""

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from brought_up import BroughtUp, dismiss, guard
from pool import program

SSHD = """
Port 22
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/key.pub
PidFile none
PermitRootLogin yes
StrictModes no
UsePAM no
"""
SSH = """
IdentityFile {folder}/key
IdentitiesOnly yes
UserKnownHostsFile /dev/null
StrictHostKeyChecking no
LogLevel ERROR
Host nowhere
  HostName 10.77.0.2
  Port 9
"""


def installed() -> bool:
    if os.geteuid() != 0 or not all(shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("sshd", "ssh", "ssh-keygen")):
        return False
    return subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0


class SshHosts(BroughtUp):
    def __init__(self, folder: Path, count: int):
        self.folder, self.count = folder, count
        self.lab = f"ssh{os.getpid()}"
        self._servers = []
        self._guard = None

    def _start(self):
        folder = self.folder
        for key in ("host_key", "key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        (folder / "sshd_config").write_text(SSHD.format(folder=folder))
        os.makedirs("/run/sshd", exist_ok=True)
        self._guard = guard(["sh", "-c", 'read end; exec "$@"', "guard", program(), "lab", "down", self.lab])
        subprocess.run([program(), "lab", "up", "-n", str(self.count), "--rate", "1gbit", "--name", self.lab], check=True, capture_output=True)
        names = "".join(f"Host host{i}\n  HostName 10.77.0.{i + 1}\nHost six{i}\n  HostName fd00:77::{i + 1}\n" for i in range(self.count))
        (folder / "ssh_config").write_text(SSH.format(folder=folder) + names)
        (folder / "bin").mkdir()
        (folder / "bin" / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {folder}/ssh_config "$@"\n')
        (folder / "bin" / "ssh").chmod(0o755)
        for i in range(self.count):
            self._servers.append(self.start(i, [shutil.which("sshd", path="/usr/sbin:/usr/bin"), "-D", "-f", str(folder / "sshd_config")]))
        for i in range(self.count):
            self._until_served(i)

    def _until_served(self, host: int):
        deadline = time.monotonic() + 20
        while self.on(host, ["ssh", f"host{host}", "true"]).returncode != 0:
            assert time.monotonic() < deadline, self.on(host, ["ssh", f"host{host}", "true"]).stderr
            time.sleep(0.05)

    def _words(self, host: int, words):
        return [program(), "lab", "exec", self.lab, f"host{host}", "--", *words]

    def environment(self, **variables):
        return {**os.environ, **variables, "PATH": f"{self.folder}/bin:{Path(program()).parent}:{os.environ['PATH']}"}

    def network(self, host: int) -> str:
        return f"shoal-{self.lab}-{host}"

    def ip(self, host: int, *words) -> str:
        return subprocess.run(["ip", "-n", self.network(host), *words], check=True, capture_output=True, text=True).stdout

    def named(self, entries: str, words) -> list[str]:
        """`words` as a command for start() and on(): it sees these lines as its /etc/hosts."""
        file = self.folder / f"hosts-{len(list(self.folder.glob('hosts-*')))}"
        file.write_text("127.0.0.1 localhost\n" + entries)
        return ["sh", "-c", f'mount --bind {file} /etc/hosts && exec "$@"', "named", *words]

    def start(self, host: int, words, **variables):
        return subprocess.Popen(self._words(host, words), env=self.environment(**variables), cwd=self.folder, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def on(self, host: int, words, timeout=100, **variables):
        return subprocess.run(self._words(host, words), env=self.environment(**variables), cwd=self.folder, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=timeout)

    def cut_connections(self, host: int) -> int:
        """Kills the sshd of each open connection; returns how many there were."""
        sessions = [pid for pid, line in self._processes(host) if line.startswith("sshd: ") and "[listener]" not in line]
        for pid in sessions:
            os.kill(pid, signal.SIGKILL)
        return len(sessions)

    def processes(self, host: int) -> list[str]:
        """The command lines of what runs on the host, its sshd left out."""
        return [line for _, line in self._processes(host) if "sshd" not in line]

    def _processes(self, host: int) -> list[tuple[int, str]]:
        namespace = os.stat(f"/run/netns/{self.network(host)}").st_ino
        found = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if os.stat(process / "ns/net").st_ino == namespace:
                    line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
                    if line:
                        found.append((int(process.name), line))
            except OSError:
                continue
        return found

    def until_idle(self, hosts):
        deadline = time.monotonic() + 20
        while left := [line for host in hosts for line in self.processes(host)]:
            assert time.monotonic() < deadline, f"left running: {left}"
            time.sleep(0.05)

    def close(self):
        for server in self._servers:
            server.terminate()
            server.communicate()
        if self._guard:
            dismiss(self._guard)
