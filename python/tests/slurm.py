"""A Slurm cluster of virtual nodes on this machine: real munged, slurmctld and slurmd, with everything they own in one folder.

    with Slurm(folder, nodes=2) as slurm:
        slurm.run(["srun", "-N2", "hostname"])

All that belongs to it, daemons, steps that flee from them by design and commands such as srun, carries its SLURM_CONF in the
environment; a guard ends that when the test is over or its process was killed. Nodes are n1, n2, ..., all at 127.0.0.1, each with a port
of its own; what runs on one is in a mount namespace whose /etc/hosts knows their names.
"""

import os
import random
import shutil
import socket
import subprocess
import time
from pathlib import Path

from brought_up import BroughtUp, dismiss, guard

CONF = """
ClusterName=shoal
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={run}/munge.sock
CredType=cred/munge
StateSaveLocation={run}/state
SlurmdSpoolDir={run}/spool-%n
SlurmctldPidFile={run}/slurmctld.pid
SlurmdPidFile={run}/slurmd-%n.pid
SlurmctldLogFile={run}/slurmctld.log
SlurmdLogFile={run}/slurmd-%n.log
TmpFS={run}/tmp/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=5,sched_interval=5,batch_sched_delay=0
ReturnToService=2
KillWait=5
MinJobAge=60
NodeName=n[1-{nodes}] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=8 RealMemory=1000
PartitionName=main Nodes=n[1-{nodes}] Default=YES State=UP
"""

# Again and again: what is being started meanwhile has its parent's environment.
END_ALL = """
read end
for look in $(seq 100); do
  processes=$(grep -lsz "^SLURM_CONF=$1$" /proc/[0-9]*/environ | cut -d/ -f3)
  [ "$processes" ] || exit 0
  kill -KILL $processes
  sleep 0.05
done
"""


def installed() -> bool:
    return os.geteuid() == 0 and all(shutil.which(name, path="/usr/sbin:/usr/bin") for name in ("munged", "slurmctld", "slurmd", "srun", "unshare"))


def _free_ports(count: int) -> int:
    """The first of `count` ports in a row on which nobody listens."""
    while True:
        first = random.randrange(12000, 19000)
        sockets = [socket.socket() for _ in range(count)]
        try:
            for i, each in enumerate(sockets):
                each.bind(("127.0.0.1", first + i))
            return first
        except OSError:
            continue
        finally:
            for each in sockets:
                each.close()


class Slurm(BroughtUp):
    def __init__(self, folder: Path, nodes: int):
        self.folder, self.nodes = folder, nodes
        self.environment = {**os.environ, "SLURM_CONF": str(folder / "slurm.conf"), "PATH": os.environ["PATH"] + ":/usr/sbin"}
        self._guard = None
        self._processes = []

    def _start(self):
        run, host = self.folder, socket.gethostname()
        os.chmod(run, 0o700)
        for name in ("state", *(f"tmp/n{i + 1}" for i in range(self.nodes)), *(f"spool-n{i + 1}" for i in range(self.nodes))):
            (run / name).mkdir(parents=True)
        (run / "munge.key").write_bytes(os.urandom(1024))
        os.chmod(run / "munge.key", 0o400)
        first = _free_ports(self.nodes + 1)
        (run / "slurm.conf").write_text(CONF.format(run=run, host=host, port=first, first=first + 1, last=first + self.nodes, nodes=self.nodes))
        (run / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")
        (run / "hosts").write_text(Path("/etc/hosts").read_text() + "".join(f"127.0.0.1 n{i + 1}\n" for i in range(self.nodes)))
        self._guard = guard(["sh", "-c", END_ALL, "guard", self.environment["SLURM_CONF"]])
        self._serve("munged", "--foreground", "--force", *(f"--{what}={run / name}" for what, name in (
            ("key-file", "munge.key"), ("socket", "munge.sock"), ("pid-file", "munge.pid"), ("seed-file", "munge.seed"), ("log-file", "munge.log"))))
        self._until(lambda: (run / "munge.sock").exists())
        self._serve("slurmctld", "-D", "-c")
        for i in range(self.nodes):
            self._serve("unshare", "--mount", "sh", "-c", f"mount --bind {run}/hosts /etc/hosts && exec slurmd -D -N n{i + 1}")
        self._until(lambda: self.run(["sinfo", "-h", "-o", "%T %D"]).stdout.strip() == f"idle {self.nodes}")

    def _serve(self, *words):
        log = open(self.folder / f"{words[0]}-{len(self._processes)}.out", "wb")
        self._processes.append(subprocess.Popen(words, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log))
        log.close()

    def _until(self, ready):
        deadline = time.monotonic() + 30
        while not ready():
            ended = [process.args for process in self._processes if process.poll() is not None]
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"no cluster: {ended or 'not ready'}\n" + self.logs())
            time.sleep(0.05)

    def logs(self) -> str:
        files = [*self.folder.glob("*.log"), *self.folder.glob("*.out")]
        return "\n".join(f"--- {file.name}\n" + "\n".join(file.read_text(errors="replace").splitlines()[-15:]) for file in files)

    def start(self, words, **variables):
        return subprocess.Popen(words, env={**self.environment, **variables}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def run(self, words, timeout=60, **variables):
        return subprocess.run(words, env={**self.environment, **variables}, capture_output=True, text=True, timeout=timeout,
                              stdin=subprocess.DEVNULL)

    def close(self):
        if self._guard:
            dismiss(self._guard)
        for process in self._processes:
            process.wait(10)
