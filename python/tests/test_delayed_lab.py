"""A lab with latency, as benchmarks make it (bench/side_by_side.py): what is sent arrives, and not sooner than was asked for."""

import os
import pathlib
import subprocess
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).parents[2] / "bench"))
import side_by_side as sbs  # noqa: E402

DELAY_MS = 30
ECHO = """
import socket
listener = socket.create_server(("0.0.0.0", 7000))
print("ready", flush=True)
peer, _ = listener.accept()
while got := peer.recv(1 << 20):
    peer.sendall(got)
"""
ASK = """
import socket, sys, threading, time
peer = socket.create_connection((sys.argv[1], 7000))
peer.sendall(b"?")
begin = time.monotonic()
peer.recv(1)  # that of the first
# Beside the receiving: who only sends has no room for what comes back, and then the other takes no more.
threading.Thread(target=peer.sendall, args=(bytes(3 << 20),)).start()
left, first = 3 << 20, None
while left:
    left -= len(peer.recv(1 << 20))
    first = first or time.monotonic() - begin
print(first)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: network namespaces")
def test_what_is_sent_arrives_whole_and_no_sooner_than_the_delay_there_and_back():
    with sbs.Lab(3, "1gbit", delay_ms=DELAY_MS) as lab:
        with subprocess.Popen(lab.exec(2, [sys.executable, "-c", ECHO]), stdout=subprocess.PIPE, text=True) as echo:
            assert echo.stdout.readline() == "ready\n"
            asked = subprocess.run(lab.exec(0, [sys.executable, "-c", ASK, lab.address(2)]), capture_output=True, text=True, timeout=60, check=True)
            assert float(asked.stdout) >= 2 * DELAY_MS / 1000
    assert lab.name not in subprocess.run([sbs.shoal(), "lab", "list"], capture_output=True, text=True, check=True).stdout


@pytest.mark.parametrize("wrong", [{"rate": None}, {"rate": "1gbit", "topology": "hosts.json"}])
def test_where_there_is_no_link_of_one_rate_it_says_so(wrong):
    with pytest.raises(SystemExit, match="--rate"):
        sbs.Lab(2, delay_ms=1, **wrong).__enter__()
