"""Tensors that members put into and get from each other: values, order, and what a user may do wrong."""

import pytest
import torch

import shoal


def all_to_all():
    """Every member puts its rows into everybody else's inbox; three times, with a sequence number for each."""
    regions, rank, size = shoal.Regions(), shoal.rank(), shoal.size()
    inbox = regions.allocate(size, 1000)
    own = torch.full((50_000,), float(rank), dtype=torch.float64)
    number = regions.register(own)
    others = [peer for peer in range(size) if peer != rank]
    seen = []
    for step in range(1, 4):
        for peer in others:
            regions.put(peer, 0, torch.full((1000,), 10.0 * step + rank), offset=1000 * rank)
            regions.signal(peer, 2 * step - 1)
        for peer in others:
            regions.wait(peer, 2 * step - 1)
        seen.append(inbox.clone())
        for peer in others:  # read: the next may come
            regions.signal(peer, 2 * step)
        for peer in others:
            regions.wait(peer, 2 * step)
    got = torch.zeros(7, dtype=torch.float64)
    regions.get(others[0], number, got, offset=49_993)
    for peer in others:
        regions.signal(peer, 100)
    for peer in others:
        regions.wait(peer, 100)
    return seen, got


def test_everybody_puts_and_gets(pool):
    for rank, (seen, got) in enumerate(pool(3).run(all_to_all)):
        for step, inbox in enumerate(seen, 1):
            expected = torch.tensor([0.0 if peer == rank else 10.0 * step + peer for peer in range(3)])
            assert torch.equal(inbox, expected[:, None].expand(3, 1000))
        assert torch.equal(got, torch.full((7,), float([1, 0, 0][rank]), dtype=torch.float64))


def signal_and_let_go(count: int):
    """What a member has signalled arrives, though it lets go of its regions at once."""
    regions = shoal.Regions()
    if shoal.rank() == 0:
        for sequence in range(1, count + 1):
            regions.signal(1, sequence)
        regions.release()
    else:
        regions.wait(0, count)


def test_signals_leave_before_their_sender_lets_go(pool):
    pool(2).run(signal_and_let_go, 20_000)


def mistakes():
    regions, lines = shoal.Regions(), []
    for call in (lambda: regions.put(shoal.rank(), 0, torch.zeros(1)), lambda: regions.wait(9, 1), lambda: regions.register(torch.zeros(4, 4).t()),
                 lambda: regions.put(shoal.rank(), 0, torch.zeros(1), offset=-1)):
        with pytest.raises(shoal.Error) as caught:
            call()
        assert caught.value.exit_code == 2
        lines.append(str(caught.value))
    return lines


def test_mistakes_are_one_line_each(pool):
    for rank, lines in enumerate(pool(3).run(mistakes)):
        assert lines == [f"put: no other member has rank {rank} (this is rank {rank} of 3)", f"wait: no other member has rank 9 (this is rank {rank} of 3)",
                         "regions: a region takes contiguous tensors of the CPU (pass tensor.contiguous().cpu())",
                         "put: an offset of -1 is before the region (offsets count elements from its start)"]
