"""The data sets of `shoal train`: what each reader makes of small files, what it says of spoilt ones, and short trainings to the end."""

import gzip
import json
import subprocess
import sys

import pytest
import torch

import shoal
import tiny_data
from pool import launch
from shoal.train import characters, cifar, multi30k
from shoal.train.tasks import Task


def refused(read, *words):
    with pytest.raises(shoal.Error) as caught:
        read()
    line = str(caught.value)
    assert all(word in line for word in words) and "\n" not in line, line
    assert caught.value.exit_code == 2


# --- CIFAR-10


@pytest.fixture
def images(tmp_path):
    return tiny_data.cifar_folder(tmp_path / "cifar")


def test_reads_jpeg_images_from_a_folder_and_from_its_tar_file_alike(images, tmp_path):
    training, test = cifar.read(str(images))
    assert len(training) == 40 and len(test) == 20 and training.pixels.shape == (40, 3, 32, 32)
    pixels, labels = training.batch(torch.tensor([0, 39]))
    assert labels.tolist() == [0, 9] and pixels.shape == (2, 3, 32, 32)
    assert pixels[0, 0].max() < -1.5 and pixels[1, 0].min() > 1  # class 9 is as red as class 0 is not
    again, _ = cifar.read(str(tiny_data.tar_of(images, tmp_path / "cifar.tar.xz")))
    assert torch.equal(again.pixels, training.pixels) and torch.equal(again.labels, training.labels)


@pytest.mark.parametrize("spoil, words", [
    (lambda f: f.write_bytes(b"no image"), "0001.jpg: not a JPEG image"),
    (lambda f: f.write_bytes(f.read_bytes()[:300]), "0001.jpg: "),
    (lambda f: f.write_bytes(tiny_data.jpeg((16, 32))), "an image of 16x32 pixels, expected 32x32"),
    (lambda f: f.write_bytes(bytes(100_000)), "100000 bytes, more than"),
    (lambda f: [each.unlink() for each in f.parent.iterdir()], "no image in train/bird"),
])
def test_a_spoilt_image_gives_one_line_that_names_it(images, spoil, words):
    spoil(images / "train" / "bird" / "0001.jpg")
    refused(lambda: cifar.read(str(images)), str(images), words)


def test_a_spoilt_tar_file_gives_one_line(images, tmp_path):
    file = tiny_data.tar_of(images, tmp_path / "cifar.tar.xz")
    file.write_bytes(file.read_bytes()[:-2000])
    refused(lambda: cifar.read(str(file)), f"{file}: no tar file, damaged or cut short")
    file.write_bytes(b"nothing of the kind")
    refused(lambda: cifar.read(str(file)), f"{file}: no tar file, damaged or cut short")
    refused(lambda: cifar.read(str(tmp_path / "none")), f"{tmp_path}/none: no such file")


def test_without_pillow_one_line_says_what_to_install(images, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL", None)
    refused(lambda: cifar.read(str(images)), "--data: JPEG files need Pillow, which this Python lacks (pip install pillow)")


# --- Multi30k


@pytest.fixture
def pairs(tmp_path):
    return tiny_data.sentences(tmp_path)


def test_reads_pairs_of_sentences(tmp_path):
    for part in ("train", "val"):
        (tmp_path / f"{part}.en").write_text("A man, a plan.\nPlan\n" if part == "train" else "A canal plan\n")
        (tmp_path / f"{part}.de").write_text("Ein Mann, ein Plan.\nPlan\n" if part == "train" else "Ein Kanalplan\n")
    training, held_out = multi30k.read(str(tmp_path))
    # By frequency, then by name: a plan , . man; of these a is 4.
    source, target, following = training.batch(torch.tensor([0, 1]))
    assert source.tolist() == [[3, 7, 5, 4, 6, 8, 4], [0, 0, 0, 0, 0, 3, 5]]
    assert target.tolist() == [[2, 4, 8, 6, 4, 5, 7], [2, 5, 0, 0, 0, 0, 0]]
    assert following.tolist() == [[4, 8, 6, 4, 5, 7, 3], [5, 3, *[-100] * 5]]
    assert [t.tolist() for t in held_out.batch(torch.tensor([0]))] == [[[3, 5, 1, 4]], [[2, 4, 1]], [[4, 1, 3]]]


@pytest.mark.parametrize("spoil, words", [
    (lambda d: (d / "val.de.gz").unlink(), ("val.de.gz: no such file",)),
    (lambda d: (d / "train.en.gz").write_bytes((d / "train.en.gz").read_bytes()[:-20]), ("train.en.gz: damaged or cut short",)),
    (lambda d: (d / "train.de.gz").write_bytes(gzip.compress(b"eins\n\xff\n")), ("train.de.gz: not text in UTF-8 (byte 5)",)),
    (lambda d: (d / "val.en").write_text("one\n"), ("val.en has 1 lines, val.de 16",)),
    (lambda d: [(d / f"train.{language}").write_text("") for language in ("en", "de")], ("train.en holds no sentence",)),
])
def test_spoilt_sentences_give_one_line(pairs, spoil, words):
    spoil(pairs)
    refused(lambda: multi30k.read(str(pairs)), *words)


# --- characters


def test_reads_windows_of_a_text(tmp_path):
    file = tiny_data.text(tmp_path / "input.txt", 3000)
    training, held_out = characters.read(str(file))
    assert len(training) == (2700 - 1) // 128 and len(held_out) == 2
    seen, following = training.batch(torch.tensor([0, 20]))
    assert seen.shape == following.shape == (2, 128) and torch.equal(seen[:, 1:], following[:, :-1])
    letters = sorted(set(file.read_text()))
    assert "".join(letters[i] for i in following[1]) == file.read_text()[20 * 128 + 1:21 * 128 + 1]
    (tmp_path / "input.txt.gz").write_bytes(gzip.compress(file.read_bytes()))
    assert torch.equal(characters.read(str(tmp_path / "input.txt.gz"))[0].tokens, training.tokens)


@pytest.mark.parametrize("text, words", [
    ("".join(map(chr, range(32, 132))) * 30, "100 different characters, the model knows 65"),
    ("abc" * 400, "1200 characters: a tenth of them"),
    ("", "0 characters"),
])
def test_a_text_that_does_not_fit_gives_one_line(tmp_path, text, words):
    (tmp_path / "t").write_text(text)
    refused(lambda: characters.read(str(tmp_path / "t")), f"{tmp_path}/t: ", words)


def test_where_a_text_is_none_one_line_says_so(tmp_path):
    refused(lambda: characters.read(str(tmp_path)), f"{tmp_path}: cannot be read")
    refused(lambda: characters.read(str(tmp_path / "none")), f"{tmp_path}/none: no such file")


# --- which data a model is trained on


@pytest.mark.parametrize("model, words", [
    ("vgg19", "--data: there is no reader for the data set of vgg19 (--data synthetic times it)"),
    ("resnet-20", "--data: where is CIFAR-10? (--data PLACE trains on it, --data synthetic only times the model)"),
])
def test_a_model_without_its_data_says_what_to_do(model, words):
    refused(lambda: Task(model).read(None, 4, seed=1), words)


def test_a_model_that_does_not_exist_is_refused_with_those_that_do():
    refused(lambda: Task("vgg16"), "vgg16: there is no such model (lenet, fcnet, ")


def trained(members, model, place, *arguments):
    command = [sys.executable, "-m", "shoal.train", model, "--data", str(place), *arguments]
    process = launch(members, command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out, err


def summary_of(out):
    return json.loads(out.split("] ", 1)[1])


def test_trains_on_images_to_their_test_accuracy(images):
    out, err = trained(2, "cifar-quick", images, "--batch", "8", "--epochs", "4")
    assert "145,578 parameters, 40 + 20 images, 2 members x 8" in err and "images/s" in err
    assert float(out.split("test accuracy")[1].split()[0]) >= 0.1


def test_trains_a_translation_and_says_how_well_in_nats(pairs):
    out, _ = trained(2, "seq2seq", pairs, "--batch", "8", "--steps", "12", "--json")
    summary = summary_of(out)
    assert summary["tokens_per_second"] > 0 and summary["perplexity"] == pytest.approx(2.718281828 ** summary["held_out_loss"], rel=1e-6)
    assert summary["held_out_loss"] < 8.5  # ln 8000 = 9 is what it knew at first


def test_trains_on_a_text_and_the_members_know_as_much_as_one(tmp_path):
    file = tiny_data.text(tmp_path / "input.txt")
    figures = [summary_of(trained(n, "char-transformer", file, "--batch", str(8 // n), "--steps", "10", "--json")[0]) for n in (1, 2)]
    assert figures[0]["held_out_loss"] == pytest.approx(figures[1]["held_out_loss"], abs=0.01)
    assert figures[0]["held_out_loss"] < 3


def test_a_batch_beyond_the_data_is_refused_before_it_costs_memory(tmp_path):
    data, _ = Task("resnet-20").read("synthetic", 10**9, seed=1)
    assert len(data.batch(torch.arange(3))[0]) == 3
    command = [sys.executable, "-m", "shoal.train", "lenet", "--data", "synthetic", "--batch", "1000000000"]
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 2
    assert ended.stderr == "shoal: --batch: 1 x 1000000000 synthetic samples a step, the data has 2560\n"


def test_synthetic_data_time_a_model_and_claim_nothing():
    out, err = trained(1, "resnet-20", "synthetic", "--batch", "4", "--steps", "3")
    assert "synthetic samples: nothing is learned" in err
    assert "no test: the data was synthetic, after 3 steps" in out and "accuracy" not in out
    assert summary_of(trained(1, "resnet-20", "synthetic", "--batch", "4", "--steps", "2", "--json")[0])["synthetic"] is True
