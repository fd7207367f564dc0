"""The zoo in Python: ordinary modules, the same as libtorch's from one description."""

import copy
import io
import pickle
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import shoal
import tiny
from against_one import MEMBERS, RANKS, check, step_and_values
from shoal import _C, models
from shoal.train.synthetic import Synthetic
from shoal.train.tasks import Task

SMALL = ("lenet", "cifar-quick", "resnet-20", "char-transformer")
# Between them every kind of layer; the wide linear heads of the others would only take time.
EVERY_LAYER = (*SMALL, "googlenet", "inception-v3", "cd-dnn", "seq2seq")


def batch(name, n=2):
    *inputs, targets = Synthetic(models.describe(name), n, seed=3).batch(torch.arange(n))
    return inputs, targets


@pytest.mark.parametrize("name", models.MODELS)
def test_a_module_has_the_parameters_of_its_description(name):
    with torch.device("meta"):
        model = models.build(name)
    assert sum(p.numel() for p in model.parameters()) == models.describe(name)["parameters"]
    assert callable(getattr(models, name.replace("-", "_")))


def test_the_page_on_models_tells_what_there_is():
    rows = [line.split("|") for line in (Path(__file__).parents[2] / "docs/models.md").read_text().splitlines() if line.startswith("| `")]
    told = {row[1].strip(" `"): (int(row[3].replace(",", "")), int(row[7])) for row in rows if len(row) == 9}
    assert told == {name: (models.describe(name)["parameters"], Task(name).batch) for name in models.MODELS}


# Goal: one definition. Method: after the same seed both sides hold the same bits under the same names and compute the same bits.
@pytest.mark.parametrize("name", EVERY_LAYER)
def test_python_and_libtorch_build_the_same_model(name):
    torch.manual_seed(5)
    ours = models.build(name)
    torch.manual_seed(5)
    theirs = _C.Described(name)
    mine, other = list(ours.named_parameters()), theirs.named_parameters()
    assert [n for n, _ in mine] == [n for n, _ in other]
    assert tiny.equal([p for _, p in mine], [p for _, p in other])
    inputs, _ = batch(name)
    ours.eval()
    theirs.train(False)
    with torch.no_grad():
        output, = theirs.forward(inputs)
        assert torch.equal(ours(*inputs), output)
    assert list(output.shape) == [2, *models.describe(name)["layers"][-1]["shape"]]


# Checkpoints and plans of earlier versions name these parameters.
def test_lenet_is_the_sequential_that_it_always_was():
    torch.manual_seed(6)
    plain = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10))
    torch.manual_seed(6)
    model, (inputs, _) = models.lenet(), batch("lenet")
    assert list(model.state_dict()) == list(plain.state_dict()) and tiny.equal(tiny.values(model), tiny.values(plain))
    assert torch.equal(model(*inputs), plain(*inputs))


def test_libtorch_gives_the_scores_of_every_head_in_training_and_refuses_a_wrong_number_of_inputs():
    theirs, inputs = _C.Described("inception-v3"), batch("inception-v3")[0]
    with torch.no_grad():
        assert [list(scores.shape) for scores in theirs.forward(inputs)] == [[2, 1000]] * 2
    with pytest.raises(shoal.Error, match="inception-v3: it reads 1 tensors, not 2"):
        theirs.forward(inputs * 2)


@pytest.mark.parametrize("name", (*SMALL, "seq2seq", "inception-v3"))
def test_a_step_reaches_every_parameter(name):
    torch.manual_seed(2)
    model, (inputs, targets) = models.build(name), batch(name)
    before = [p.detach().clone() for p in model.parameters()]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    Task(name).loss(model(*inputs), targets).backward()
    optimizer.step()
    for (which, parameter), old in zip(model.named_parameters(), before):
        assert parameter.grad.isfinite().all() and not torch.equal(parameter, old), which


def test_an_auxiliary_classifier_counts_with_its_weight():
    scores, side, targets = torch.randn(3, 1000), torch.randn(3, 1000), torch.arange(3)
    expected = F.cross_entropy(scores, targets) + 0.4 * F.cross_entropy(side, targets)
    assert torch.equal(Task("inception-v3").loss((scores, side), targets), expected)


def test_a_model_is_what_people_expect_of_a_module():
    model, (inputs, _) = models.resnet_20().eval(), batch("resnet-20")
    expected = model(*inputs)
    assert type(model.get_submodule("layer2.0.conv1")) is nn.Conv2d and "conv1" in repr(model)
    assert torch.equal(copy.deepcopy(model)(*inputs), expected)
    assert torch.equal(pickle.loads(pickle.dumps(model))(*inputs), expected)
    other = models.resnet_20().eval()
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file))
    assert torch.equal(other(*inputs), expected)
    assert torch.equal(torch.compile(model, backend="eager", fullgraph=True)(*inputs), expected)
    model.fc = nn.Linear(64, 100)
    assert model(*inputs).shape == (2, 100)
    assert model.double()(inputs[0].double()).dtype == torch.float64


def test_the_parameters_of_resnet_and_vgg_have_the_names_of_torchvision():
    with torch.device("meta"):
        resnet, vgg = models.resnet_50().state_dict(), models.vgg19().state_dict()
    assert {"conv1.weight", "bn1.running_mean", "layer1.0.downsample.1.weight", "layer4.2.bn3.bias", "fc.bias"} <= resnet.keys()
    assert {"features.0.weight", "features.34.bias", "classifier.6.weight"} <= vgg.keys()
    assert resnet["layer1.0.downsample.0.weight"].shape == (256, 64, 1, 1)


def test_padding_in_front_of_a_source_is_not_attended_to():
    torch.manual_seed(4)
    attend = models.AdditiveAttention(6)
    queries, keys, values = torch.randn(1, 3, 6), torch.randn(1, 5, 6), torch.randn(1, 5, 4)
    tokens = torch.tensor([[0, 0, 7, 8, 9]])
    cut = attend(queries, keys[:, 2:], values[:, 2:], tokens[:, 2:])
    assert torch.allclose(attend(queries, keys, values, tokens), cut, rtol=0, atol=1e-6)


def test_a_character_does_not_see_what_follows():
    model, (inputs, _) = models.char_transformer().eval(), batch("char-transformer")
    changed = inputs[0].clone()
    changed[:, 50:] = 1
    assert torch.equal(model(inputs[0])[:, :50], model(changed)[:, :50]) and not torch.equal(model(inputs[0])[:, 50:], model(changed)[:, 50:])


def part(rank, step=0):
    task = Task("char-transformer")
    generator = torch.Generator().manual_seed(10 * step + rank)
    return task, torch.randint(0, 65, (2, 16), generator=generator), torch.randint(0, 65, (2, 16), generator=generator)


def backward(net, rank):
    task, tokens, targets = part(rank)
    task.loss(net(tokens), targets).backward()


def one_step_of_a_transformer():
    torch.manual_seed(1)
    net, optimizer = tiny.wrap(models.char_transformer())
    return step_and_values(net, optimizer, lambda: backward(net, shoal.rank()))


def test_members_train_a_model_of_the_zoo_as_one_process_would(pool):
    torch.manual_seed(1)
    net = models.char_transformer()
    check(pool(MEMBERS).run(one_step_of_a_transformer), net, tiny.sgd(net), [lambda n, s, r=r: backward(n, r) for r in RANKS])


# Goal: what attention made of one place is read at the next. Relation: a decoder that leaves it unread is an LSTM over all places with attention behind
# it; one that reads it gives the same at the first place alone.
def test_a_decoder_is_fed_what_came_out_at_the_place_before():
    torch.manual_seed(7)
    decoder = models.FedDecoder(5, 6, 2)
    read, found, keys, tokens = torch.randn(2, 4, 5), torch.randn(2, 3, 6), torch.randn(2, 3, 6), torch.ones(2, 3, dtype=torch.int64)
    state = torch.randn(2, 2, 6), torch.randn(2, 2, 6)
    fed = decoder(read, found, keys, tokens, state)
    with torch.no_grad():
        decoder.lstm.weight_ih_l0[:, 5:] = 0
    decoded, _ = decoder.lstm(F.pad(read, (0, 6)), state)
    context = decoder.attention(decoder.query(decoded), keys, found, tokens)
    unfed = torch.tanh(decoder.combine(torch.cat((decoded, context), -1)))
    assert torch.allclose(decoder(read, found, keys, tokens, state), unfed, rtol=0, atol=1e-6)
    assert torch.allclose(fed[:, 0], unfed[:, 0], rtol=0, atol=1e-6)
    assert (fed[:, 1:] - unfed[:, 1:]).abs().amax((0, 2)).min() > 1e-3
