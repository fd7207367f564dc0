"""init_process_group(): PyTorch's default process group on Shoal's backend, under every launcher.

Under torchrun it is torch.distributed.init_process_group("shoal"). Elsewhere rank 0 opens the store that torchrun would have
opened, and each process gets those of torchrun's variables by which libraries find their place and that store.
"""

import os
import secrets

from torch import distributed

from . import _C, session
from .errors import mistake

_store = None  # rank 0's, as long as the process: whoever reads the variables may connect to it later


def init_process_group() -> None:
    """Joins the run and makes the group. Again: does nothing. Raises Error if there is a default group of another backend."""
    global _store
    if distributed.is_initialized():
        if distributed.get_backend() != "shoal":
            raise mistake("shoal.init_process_group", f"there is a default process group on {distributed.get_backend()} already",
                          "call it first, or destroy_process_group()")
        return
    launcher, rank, size, _ = _C.find_place()
    if launcher == "torchrun":
        # As PyTorch would make it, but waiting less for who never comes.
        store = distributed.PrefixStore("default_pg", session.store_of_torchrun(size))
        distributed.init_process_group("shoal", store=store, rank=rank, world_size=size)
        return
    here = session.current()
    address = here.addresses[0].rpartition(":")[0].strip("[]") if here.size > 1 else "127.0.0.1"
    if here.rank == 0:
        _store = _store or _open_store(address)
    port = int(here.broadcast(str(_store.port) if _store else "", 0, "port of the store"))
    # The store is open to the network. Where the launcher carried the session's secret, groups have none in the environment.
    os.environ["SHOAL_SECRET"] = here.broadcast(secrets.token_hex(32) if here.rank == 0 else "", 0, "secret of the group").decode()
    hosts = here.hosts
    os.environ |= {name: str(value) for name, value in {
        "RANK": here.rank, "WORLD_SIZE": here.size,
        "LOCAL_RANK": hosts[:here.rank].count(hosts[here.rank]), "LOCAL_WORLD_SIZE": hosts.count(hosts[here.rank]),
        "MASTER_ADDR": address, "MASTER_PORT": port,
        "TORCHELASTIC_USE_AGENT_STORE": True,  # whoever reads them connects to the store, and opens none
    }.items()}
    store = _store or distributed.TCPStore(address, port, is_master=False)
    distributed.init_process_group("shoal", store=distributed.PrefixStore("shoal/group", store), rank=here.rank, world_size=here.size)


def _open_store(address: str) -> distributed.TCPStore:
    first, last = _C.port_range()
    for port in range(first, last + 1):
        try:
            return distributed.TCPStore(address, port, is_master=True, wait_for_workers=False)
        except distributed.DistNetworkError:
            continue  # somebody listens there already
    raise mistake("SHOAL_PORT_RANGE", "no port of it is left for the store of the process group", "choose a wider range")
