"""Embeddings over tables: training ends as with torch.nn.Embedding in one process, a run goes on to the bit, and what a user may do wrong."""

import contextlib
import copy
import itertools

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal

WORDS, WIDTH, STEPS, PADDING = 40, 6, 7, 3
RULES = {"sgd:0.2": lambda p: torch.optim.SGD(p, lr=0.2), "adagrad:0.1": lambda p: torch.optim.Adagrad(p, lr=0.1),
         "adam:0.05": lambda p: torch.optim.Adam(p, lr=0.05)}
_number = itertools.count()


def new_table(rule="sgd:0.2", name=None, **options):
    options = {"consistency": "bsp", "initial": shoal.Initial.normal(0, 1, seed=5), **options}
    return shoal.Table(name or f"embedding-{next(_number)}", WIDTH, rule=rule, **options)


class Net(nn.Module):
    """Its embedding is used twice in a pass, of ids and of bags of them."""

    def __init__(self, embedding):
        super().__init__()
        torch.manual_seed(2)
        self.embedding, self.last = embedding, nn.Linear(2 * WIDTH, 3)

    def forward(self, ids):
        return self.last(torch.cat([self.embedding(ids).sum(1), self.embedding(ids[:, :2]).tanh().mean(1)], 1))


def batch(step, rank, all_words=False):
    """Ids repeat and the padding is among them. all_words: each id is in each batch, so that a rule that steps rows with a gradient steps all."""
    generator = torch.Generator().manual_seed(100 * step + rank)
    ids = torch.randint(0, WORDS // 2, (16, 4), generator=generator)
    if all_words:
        ids[:, 1:] = torch.cat([torch.randperm(WORDS, generator=generator), torch.arange(8)]).view(16, 3)
    return ids, torch.randint(0, 3, (16,), generator=generator)


def step_alone(net, optimizer, batches):
    optimizer.zero_grad()
    for ids, labels in batches:
        (F.cross_entropy(net(ids), labels) / len(batches)).backward()
    optimizer.step()


def train(rule, name, steps, table=None):
    embedding = shoal.nn.TableEmbedding(table or new_table(rule, name), padding_idx=PADDING)
    net = Net(embedding)
    net, optimizer = shoal.data_parallel(net, RULES[rule](net.parameters()))
    for step in steps:
        ids, labels = batch(step, shoal.rank(), rule.startswith("adam"))
        optimizer.zero_grad()
        loss = F.cross_entropy(net(ids), labels)
        embedding.intend(batch(step + 1, shoal.rank())[0])
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        rows = embedding(torch.arange(WORDS))
    embedding.table.barrier()
    return rows, [p.detach().clone() for p in net.module.last.parameters()], embedding.table.clock


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("rule", RULES)
def test_members_train_as_one_process_does_with_a_dense_embedding(pool, rule, members):
    weight = new_table(rule).read(range(WORDS))
    dense = nn.Embedding(WORDS, WIDTH, _weight=torch.from_numpy(weight), padding_idx=PADDING)
    dense.weight.data[PADDING] = 0
    net = Net(dense)
    optimizer = RULES[rule](net.parameters())
    for step in range(STEPS):
        step_alone(net, optimizer, [batch(step, rank, rule.startswith("adam")) for rank in range(members)])
    for rows, last, clock in pool(members).run(train, rule, f"train-{members}-{rule.partition(':')[0]}", range(STEPS)):
        assert clock == STEPS
        torch.testing.assert_close(rows, dense.weight.detach(), rtol=2e-5, atol=2e-6)
        for ours, theirs in zip(last, net.last.parameters()):
            torch.testing.assert_close(ours, theirs.detach(), rtol=2e-5, atol=2e-6)


def unequal(name, joins):
    """Members have 16, 11 and no samples in a step, or 4, 2 and 1 steps."""
    rank = shoal.rank()
    net = Net(shoal.nn.TableEmbedding(new_table("adagrad:0.1", name)))
    net, optimizer = shoal.data_parallel(net, RULES["adagrad:0.1"](net.parameters()))
    count = 16 if joins else [16, 11, 0][rank]
    with net.join() if joins else contextlib.nullcontext():
        for step in range([4, 2, 1][rank] if joins else 4):
            ids, labels = batch(step, rank)
            optimizer.zero_grad()
            (F.cross_entropy(net(ids[:count]), labels[:count], reduction="sum") / max(1, count)).backward()
            optimizer.step()
    rows = torch.from_numpy(net.embedding.table.read(range(WORDS)))
    net.embedding.table.barrier()
    return rows


@pytest.mark.parametrize("joins", [False, True])
def test_members_count_by_their_samples(pool, joins):
    dense = nn.Embedding(WORDS, WIDTH, _weight=torch.from_numpy(new_table().read(range(WORDS))))
    net = Net(dense)
    optimizer = RULES["adagrad:0.1"](net.parameters())
    for step in range(4):
        active = [rank for rank in range(3) if not joins or step < [4, 2, 1][rank]]
        batches = [[part[: 16 if joins else [16, 11, 0][rank]] for part in batch(step, rank)] for rank in active]
        step_alone(net, optimizer, [[torch.cat(parts) for parts in zip(*batches)]])
    for rows in pool(3).run(unequal, f"unequal-{joins}", joins):
        torch.testing.assert_close(rows, dense.weight.detach(), rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_are_those_of_torch(mode):
    """By offsets and as rows, of strings, with an empty bag; gradients reach the rows of all of them."""
    table = new_table("sgd:1")
    ours = shoal.nn.TableEmbeddingBag(table, padding_idx="dog", mode=mode)
    words = "the cat sat on the mat and the dog sat on the cat dog".split()
    known = sorted(set(words))
    dense = nn.EmbeddingBag(len(known), WIDTH, mode=mode, padding_idx=known.index("dog"), _weight=torch.from_numpy(table.read(known)))
    offsets = torch.tensor([0, 3, 3, 9])
    places = torch.tensor([known.index(word) for word in words])
    for one, other in [(ours(words, offsets), dense(places, offsets)), (ours([words[:7], words[7:]]), dense(places.view(2, 7)))]:
        assert torch.equal(one, other)
        one.pow(2).sum().backward()
        other.pow(2).sum().backward()
    shoal.nn.step(ours)
    torch.testing.assert_close(torch.from_numpy(table.read(known)), (dense.weight - dense.weight.grad).detach())
    if mode == "sum":
        weights = torch.rand(14)
        dense.weight.data = torch.from_numpy(table.read(known))
        assert torch.equal(ours(words, offsets, weights), dense(places, offsets, weights))


def change_of_a_step(layer, ids):
    before = torch.from_numpy(layer.table.read(ids))
    shoal.nn.step(layer)
    return before - torch.from_numpy(layer.table.read(ids))


def test_what_is_gathered_is_what_grad_would_hold():
    layer = shoal.nn.TableEmbedding(new_table("sgd:1"))
    ids = torch.tensor([[5, 7], [5, 5]])
    times = torch.tensor([[3.0], [1.0]]).expand(2, WIDTH)
    layer(ids).sum().backward()
    layer(ids).sum().backward()  # a second pass is added
    assert torch.allclose(change_of_a_step(layer, [5, 7]), 2 * times)
    assert torch.equal(change_of_a_step(layer, [5, 7]), 0 * times)  # and handed over once
    layer(ids).sum().backward()
    layer.zero_grad()
    output = layer(ids)
    output.sum().backward()
    assert torch.allclose(change_of_a_step(layer, [5, 7]), times)
    layer.zero_grad()
    (layer(ids).sum() + layer(ids).sum()).backward()  # twice in one pass
    layer(ids[:0]).sum().backward()                   # an empty batch
    assert torch.allclose(change_of_a_step(layer, [5, 7]), 2 * times)
    layer(ids).sum().backward()
    layer.zero_grad()                                 # dropped, and nothing came after
    assert torch.equal(change_of_a_step(layer, [5, 7]), 0 * times)
    assert layer(ids[:0]).shape == (0, 2, WIDTH) and layer.table.clock == 5


def test_gradients_are_taken_only_where_something_trains():
    layer = shoal.nn.TableEmbedding(new_table())
    ids = torch.tensor([1, 2])
    assert layer(ids).requires_grad and layer.eval()(ids).requires_grad
    with torch.no_grad():
        assert not layer(ids).requires_grad
    assert not nn.Sequential(layer).requires_grad_(False)[0](ids).requires_grad
    layer.requires_grad_(True)
    copied = copy.deepcopy(layer)
    assert torch.equal(copied(ids), layer(ids)) and copied.table is layer.table
    assert layer.double()(ids).dtype == torch.float64
    assert list(layer.state_dict()) == ["weight"] and layer.state_dict()["weight"].shape == (0, WIDTH)


def test_a_gradient_penalty_reaches_the_rows():
    """Second derivatives by activations are those of a dense embedding."""
    table = new_table("sgd:1")
    ours, dense = shoal.nn.TableEmbedding(table), nn.Embedding(5, WIDTH, _weight=torch.from_numpy(table.read(range(5))))
    for layer in (ours, dense):
        rows = layer(torch.tensor([1, 4, 1]))
        (gradient,) = torch.autograd.grad(rows.pow(3).sum(), rows, create_graph=True)
        gradient.pow(2).sum().backward()
    shoal.nn.step(ours)
    torch.testing.assert_close(torch.from_numpy(table.read(range(5))), (dense.weight - dense.weight.grad).detach(), rtol=1e-4, atol=1e-4)


def test_a_compiled_model_trains_the_same_rows():
    nets = [Net(shoal.nn.TableEmbedding(new_table("sgd:0.5"))) for _ in range(2)]
    for net, call in [(nets[0], nets[0]), (nets[1], torch.compile(nets[1], backend="aot_eager"))]:
        for step in range(3):
            net.zero_grad()
            ids, labels = batch(step, 0)
            F.cross_entropy(call(ids), labels).backward()
            shoal.nn.step(net)
    torch.testing.assert_close(*[torch.from_numpy(net.embedding.table.read(range(WORDS))) for net in nets])


def tied(name):
    """Two layers of one table and one of another: a step is one clock of each table."""
    one, other = new_table("sgd:1", name + "-one"), new_table("sgd:1", name + "-other")
    layers = nn.ModuleList([shoal.nn.TableEmbedding(one), shoal.nn.TableEmbeddingBag(one, mode="sum"), shoal.nn.TableEmbedding(other)])
    before = one.read([1])
    ids = torch.tensor([[1]])
    sum(layer(ids).sum() for layer in layers).backward()
    shoal.nn.step(layers)
    change = (one.read([1]) - before).ravel().tolist()
    one.barrier()
    return one.clock, other.clock, change


def test_layers_may_share_a_table(pool):
    for one, other, change in pool(2).run(tied, "tied"):
        assert (one, other) == (1, 1)
        assert change == pytest.approx([-2] * WIDTH, rel=1e-5)


def halves(folder, name, rule):
    """Three steps, a snapshot of rows and model, three more; then from the snapshot the same three again."""
    table = new_table(rule, name)
    net = Net(shoal.nn.TableEmbedding(table, padding_idx=PADDING))
    net, optimizer = shoal.data_parallel(net, RULES[rule](net.parameters()))

    def go(steps):
        for step in steps:
            ids, labels = batch(step, shoal.rank())
            optimizer.zero_grad()
            F.cross_entropy(net(ids), labels).backward()
            optimizer.step()
        net.flush()
        rows = torch.from_numpy(table.read(range(WORDS)))
        table.barrier()
        return rows, *(p.detach().clone() for p in net.module.last.parameters())

    go(range(3))
    under_way = table.snapshot_begin(folder / "rows") if shoal.rank() == 0 else None
    shoal.save(folder / "model", net, optimizer)
    whole = go(range(3, 6))
    if under_way is not None:
        under_way.wait()
    shoal.load(folder / "model", net, optimizer)
    table.restore(folder / "rows")
    return whole, go(range(3, 6))


@pytest.mark.parametrize("rule", ["adagrad:0.1", "adam:0.05"])
def test_a_run_goes_on_to_the_bit(pool, tmp_path, rule):
    for whole, again in pool(2).run(halves, tmp_path, f"halves-{rule.partition(':')[0]}", rule):
        assert all(torch.equal(one, other) for one, other in zip(whole, again))


@pytest.mark.parametrize("consistency", ["essp:2", "ssp:2", "async", "bsp:1"])
def test_stale_rows_train_too(pool, consistency):
    for before, after in pool(3).run(stale, f"stale-{consistency.replace(':', '-')}", consistency):
        assert after < before / 2


def stale(name, consistency):
    """The mean squared norm of the rows that all members shrink, before any has and when all have. The rate is so small that no row is
    overshot even where nobody sees another's steps, which async allows: a row's come to at most 1.3 times itself. By bsp a step is the mean of three."""
    rule = "sgd:0.03" if consistency.startswith("bsp") else "sgd:0.01"
    layer = shoal.nn.TableEmbedding(new_table(rule, name, consistency=consistency))
    batches = [batch(k, shoal.rank())[0] for k in range(3)]

    def loss(ids):
        return layer(ids).pow(2).sum(-1).mean() * 10

    def all_batches():
        layer.table.barrier()
        with torch.no_grad():
            total = sum(loss(ids).item() for ids in batches)
        layer.table.barrier()
        return total

    before = all_batches()
    for step in range(30):
        loss(batches[step % 3]).backward()
        shoal.nn.step(layer)
    return before, all_batches()


def mistakes():
    table = new_table()
    layer, few = shoal.nn.TableEmbedding(table), shoal.nn.TableEmbedding(table, num_embeddings=10)
    ids = torch.tensor([1])
    return {
        "-3 is no key: these are from 0 to 2**64 - 1": lambda: layer(torch.tensor([[2, -3]])),
        "keys are integers or strings, not float32": lambda: layer(torch.tensor([0.5])),
        "keys are integers or strings, not both": lambda: layer(["a", 1]),
        "TableEmbedding: id 10 is not below num_embeddings, 10": lambda: few(torch.tensor([2, 10])),
        "TableEmbedding: there is no max_norm (rows that are read are not changed)": lambda: shoal.nn.TableEmbedding(table, max_norm=1.0),
        "TableEmbedding: there is no device (num_embeddings and padding_idx are its options)": lambda: shoal.nn.TableEmbedding(table, device="cpu"),
        'TableEmbedding: its rows are those of a shoal.Table, not of 10 (as in TableEmbedding(shoal.Table("words", 64, rule="adagrad:0.1")))':
            lambda: shoal.nn.TableEmbedding(10, 4),
        "TableEmbeddingBag: there is no mode 'min' (one of sum, mean and max)": lambda: shoal.nn.TableEmbeddingBag(table, mode="min"),
        f"TableEmbedding: the servers of table sums-{id(table)} sum (for gradients give it a rule that steps, as in rule=\"sgd:0.1\")":
            lambda: shoal.nn.TableEmbedding(shoal.Table(f"sums-{id(table)}")),
        f"TableEmbedding: table counts-{id(table)} holds int64 (gradients need float32 or float64)":
            lambda: shoal.nn.TableEmbedding(shoal.Table(f"counts-{id(table)}", dtype="int64")),
        "TableEmbedding: its rows are in a table, not in a pickle (keep state_dict() and table.snapshot(path))":
            lambda: torch.save(layer, "/dev/null"),
        "backward(create_graph=True): the gradients of a table's rows cannot be differentiated (differentiate by activations instead)":
            lambda: layer(ids).pow(2).sum().backward(create_graph=True),
    }


@pytest.mark.filterwarnings("ignore:Using backward")
def test_what_cannot_be_is_one_line():
    for line, call in mistakes().items():
        with pytest.raises(shoal.Error) as caught:
            call()
        assert str(caught.value) == line and caught.value.exit_code == 2
