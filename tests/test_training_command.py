"""Each test pins one sentence about `utils.training.text`, the command."""

import math
import random
import re
import signal
from pathlib import Path

import pytest
import torch
from torch import nn

from utils.data import load_text
from utils.model import generate
from utils.training import save_checkpoint
from utils.training import text as command
from utils.training.text import draw_windows, load_text_model, main

TINY = "--width 8 --heads 2 --layers 1 --context 8 --batch 2 --merges 9".split()
LAST = r"step 12  training loss \d\.\d{4}  held-out loss \d\.\d{4}"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(load_text()[:3000], encoding="utf-8")
    return str(path)


def test_the_command_ends_with_a_sample_and_the_losses(text, capsys):
    assert main([text, "--steps", "12", "--save-every", "5", *TINY]) == 0
    out, err = capsys.readouterr()
    first, *lines = out.splitlines()
    assert re.fullmatch(r"[\d,]+ tokens, [\d,]+ held out, [\d,]+ parameters", first)
    assert [line.split("  ")[0] for line in lines[:2]] == ["step 5", "step 10"]
    assert re.fullmatch(LAST, lines[-1])
    held_out = load_text()[:3000][2700:]
    assert lines[3][:1] == held_out[:1]
    assert err == ""


def test_the_mark_and_the_line_ends_of_windows_are_no_part_of_the_text(
    text, tmp_path, capsys
):
    windows = tmp_path / "text.txt"
    content = Path(text).read_text(encoding="utf-8").replace("\n", "\r\n")
    windows.write_text(content, encoding="utf-8-sig", newline="")
    for path in (text, windows):
        assert main([str(path), "--steps", "1", *TINY]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[: len(said) // 2] == said[len(said) // 2 :]


def test_the_command_learns(text, capsys):
    main([text, "--steps", "150", "--save-every", "50", "--lr", "0.01", *TINY])
    out = capsys.readouterr().out
    first, _, last = [float(loss) for loss in re.findall(r"held-out loss (.*)", out)]
    assert last < first < math.log(256)


def test_ctrl_c_ends_the_command_politely(text, tmp_path, capsys, monkeypatch, ctrl_c):
    arguments = [text, "--steps", "12", *TINY, "--checkpoint", str(tmp_path / "a.pt")]
    main([text, "--steps", "12", *TINY])
    expected = capsys.readouterr().out.splitlines()[-1]

    def press(model, batch, calls=[]):  # noqa: B006
        calls.append(batch)
        if len(calls) == 7:
            signal.raise_signal(signal.SIGINT)
        return loss(model, batch)

    loss = command.next_token_loss
    monkeypatch.setattr(command, "next_token_loss", press)
    assert main(arguments) == 130
    said = f"\nstopped: the same command goes on from {tmp_path / 'a.pt'}\n"
    assert capsys.readouterr().err == said
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1] == expected


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "text.txt: No such file or directory"),
        (b"", "text.txt is empty: expected a text"),
        (b" \n", "text.txt is empty: expected a text"),
        (b"GIF89a\xff\xfe", "text.txt is no text: expected UTF-8, got other bytes"),
        (b"a\0b", "text.txt is no text: expected UTF-8, got other bytes"),
        (b"too short", "text.txt is too short: a part of it has 1 tokens, expected"),
    ],
)
def test_a_text_that_will_not_do_is_an_error_of_one_line(
    tmp_path, capsys, content, said
):
    if content is not None:
        (tmp_path / "text.txt").write_bytes(content)
    assert main([str(tmp_path / "text.txt")]) == 2
    out, err = capsys.readouterr()
    assert err.startswith(f"error: {tmp_path}") and said in err
    assert (out, err.count("\n")) == ("", 1)


def test_a_checkpoint_of_the_command_becomes_a_model_again(text, tmp_path, capsys):
    path = tmp_path / "a.pt"
    main([text, "--steps", "12", "--lr", "0.1", *TINY, "--checkpoint", str(path)])
    out = capsys.readouterr().out
    model, encode, decode = load_text_model(path)
    told = Path(text).read_text(encoding="utf-8")
    assert decode(encode(told)) == told and len(encode(told)) < len(told)
    assert not model.training and model.context_length == 8
    assert model.blocks[0].attention.dropout_p == 0
    held_out = torch.tensor([encode(told[2700:])])
    torch.manual_seed(0)
    written = decode(generate(model, held_out[:, :4], 150, 0.8)[0].tolist())
    assert f"parameters\n\n{written}\n\nstep 12 " in out


def test_a_checkpoint_of_another_training_does_not_become_one(tmp_path):
    for metadata in ({}, {"metadata": {"width": 8}}, {"about": [8]}):
        save_checkpoint(nn.Linear(1, 1), tmp_path / "a.pt", **metadata)
        with pytest.raises(ValueError, match="a.pt, which does not say what it was tr"):
            load_text_model(tmp_path / "a.pt")


def test_a_batch_depends_on_its_seed_and_number_alone():
    ids = torch.arange(1000)
    torch.manual_seed(0)
    random.seed(0)
    first = draw_windows(ids, 5, 4, seed=1, number=7)
    torch.rand(3), random.random()
    again = draw_windows(ids, 5, 4, seed=1, number=7)
    assert torch.equal(first[0], again[0]) and torch.equal(first[1], again[1])
    assert torch.equal(first[1], first[0] + 1)
    for seed, number in ((1, 8), (2, 7)):
        assert not torch.equal(first[0], draw_windows(ids, 5, 4, seed, number)[0])


@pytest.mark.parametrize(
    "words, said",
    [
        (["--heads", "4"], "another model: expected heads of 4, got 2"),
        (["--merges", "8"], "another model: expected vocabulary of 264"),
        (["--checkpoint", "/no/such/a.pt"], "/no/such: No such file"),
    ],
)
def test_a_checkpoint_that_will_not_do_is_an_error_of_one_line_and_is_kept(
    text, tmp_path, capsys, words, said
):
    path = tmp_path / "a.pt"
    arguments = [text, "--steps", "2", *TINY, "--checkpoint", str(path)]
    assert main(arguments) == 0
    before = path.read_bytes()
    capsys.readouterr()
    assert main([*arguments, *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and said in err and err.count("\n") == 1
    assert path.read_bytes() == before
