"""Each test pins one sentence about `utils.training.text`, the command."""

import contextlib
import io
import math
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from repository import ROOT
from torch import nn

from utils.data import load_text, sliding_windows
from utils.model import GPT, generate, next_token_loss
from utils.training import (
    save_checkpoint,
)
from utils.training import (
    text as command,
)
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


def test_the_mark_and_the_line_ends_of_windows_are_no_part_of_the_text(tmp_path):
    (tmp_path / "text.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\n")
    assert command._read_text(tmp_path / "text.txt") == "one\ntwo\n"


class Stream(io.StringIO):
    """Text that is seen once it has been flushed."""

    seen = ""

    def flush(self):
        self.seen = self.getvalue()


@pytest.fixture
def asked(monkeypatch):
    """Take no step; return what a training is asked for, and what is seen by then."""
    asked = {}

    def watch(model, batches, compute_loss, steps, lr, checkpoint, **options):
        asked.update(options, model=model, batches=batches, steps=steps, lr=lr)
        asked.update(compute_loss=compute_loss, seen=getattr(sys.stdout, "seen", ""))
        return [0.0] * steps

    monkeypatch.setattr(command, "train", watch)
    return asked


@pytest.mark.parametrize("steps, warmup", [(119, 11), (1000, 50)])
def test_the_rate_warms_up_for_a_tenth_of_the_steps_or_50_and_falls_to_a_tenth(
    text, asked, steps, warmup
):
    options = ["--steps", str(steps), "--lr", "0.5"]
    assert main([text, *options, *TINY]) == 0
    assert (asked["warmup"], asked["lr"], asked["final_lr"]) == (warmup, 0.5, 0.05)
    assert (asked["weight_decay"], asked["clip"]) == (0.1, 1.0)


def test_the_options_reach_the_training(text, asked):
    options = "--dropout 0.25 --accumulate 3 --save-every 4 --seed 5".split()
    assert main([text, *options, *TINY]) == 0
    assert asked["model"].blocks[0].attention.dropout_p == 0.25
    assert (asked["accumulate"], asked["save_every"]) == (3, 4)
    assert asked["compute_loss"] is next_token_loss
    ids, _, _ = command._prepare(command._options([text, *TINY]))
    for number in (0, 7):
        expected = draw_windows(ids, 8, 2, 5, number)
        for received, part in zip(asked["batches"](number), expected):
            assert torch.equal(received, part)


def test_the_sizes_are_seen_before_the_training(text, asked, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Stream())
    assert main([text, *TINY]) == 0
    assert asked["seen"].endswith(" parameters\n")


def test_several_processes_share_each_batch(text, asked, monkeypatch):
    monkeypatch.setattr(command, "split_batch_over_processes", lambda *given: given)
    options = command._options([text, *TINY])
    options.rank, options.processes = 1, 2
    command._train_on_text(options, command._say_nothing)
    assert asked["compute_loss"] == (asked["model"], next_token_loss)


def test_with_a_gpu_of_its_own_a_process_trains_there(text, asked, monkeypatch):
    monkeypatch.setattr(command, "has_own_gpu", lambda: True)
    monkeypatch.setattr(
        GPT, "to", lambda model, device: asked.update(to=device) or model
    )
    assert main([text, *TINY]) == 0
    assert asked["to"] == "cuda"


def test_byte_pairs_are_learned_on_the_first_million_characters(tmp_path, monkeypatch):
    def learn(text, merges):
        learned.append((len(text), merges))
        return []

    learned, file = [], tmp_path / "text.txt"
    monkeypatch.setattr(command, "train_bpe", learn)
    monkeypatch.setattr(command, "_encode", lambda text, merges: text)
    file.write_text("a " * 600_000)
    options = command._options([str(file), "--merges", "7"])
    learned_on, held_out, _ = command._prepare(options)
    assert learned == [(1_000_000, 7)]
    assert (len(learned_on), len(held_out)) == (1_080_000, 120_000)


def test_each_part_of_a_text_has_more_tokens_than_a_window(tmp_path, monkeypatch):
    monkeypatch.setattr(command, "train_bpe", lambda text, merges: [])
    file = tmp_path / "text.txt"
    file.write_text("x" * 80)
    command._prepare(command._options([str(file), "--context", "7"]))
    with pytest.raises(ValueError) as error:
        command._prepare(command._options([str(file), "--context", "8"]))
    assert str(error.value) == (
        f"{file} is too short: a part of it has 8 tokens, expected more than "
        "--context 8 to train on and in the last tenth"
    )


@pytest.mark.parametrize("length, stride", [(43, 8), (128 * 20, 20)])
def test_the_held_out_loss_is_the_mean_over_all_windows_or_over_128(length, stride):
    torch.manual_seed(0)
    model = GPT(11, 8, 8, 2, 1, dropout=0.5).train()
    ids, options = torch.randint(11, (length,)), SimpleNamespace(context=8, batch=3)
    loss = command._held_out_loss(model, ids, options)
    assert model.training
    windows = sliding_windows(ids, 8, stride)
    torch.testing.assert_close(loss, next_token_loss(model.eval(), windows))
    said = command._report(model, ids, options, torch.arange(100.0))
    expected = f"step 100  training loss 74.5000  held-out loss {loss:.4f}"
    assert said == expected  # the mean of the last 50


def test_what_a_model_reads_is_on_its_device(monkeypatch):
    def loss(model, batch):
        devices.extend(part.device.type for part in batch)
        return 0.0

    def write(model, start, *number, **options):
        devices.append(start.device.type)
        return torch.zeros(1, 1, dtype=torch.long)

    monkeypatch.setattr(command, "next_token_loss", loss)
    monkeypatch.setattr(command, "generate", write)
    model, ids, devices = nn.Linear(1, 1, device="meta"), torch.arange(20), []
    command._held_out_loss(model, ids, SimpleNamespace(context=8, batch=3))
    command._sample(model, ids, {"merges": []})
    assert devices == ["meta"] * 3


def test_the_command_comes_to_the_same_end_every_time(text, capsys):
    outs = []
    for _ in range(2):
        main([text, "--steps", "12", *TINY])
        outs.append(capsys.readouterr().out)
    assert outs[0] == outs[1]


def test_the_command_learns(text, capsys):
    main([text, "--steps", "150", "--save-every", "50", "--lr", "0.01", *TINY])
    out = capsys.readouterr().out
    first, _, last = [float(loss) for loss in re.findall(r"held-out loss (.*)", out)]
    assert last < first < math.log(256)


def test_in_a_terminal_the_command_draws_a_bar(text, capsys, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    main([text, "--steps", "12", *TINY])
    out, err = capsys.readouterr()
    assert re.search(r"\r#{30} 12 of 12  loss \d\.\d{3} ", err)
    assert re.fullmatch(LAST, out.splitlines()[-1])


def test_all_processes_but_the_first_are_silent(text, capsys):
    options = command._options([text, "--steps", "6", "--save-every", "2", *TINY])
    options.rank, options.processes = 1, 1
    command._train_on_text(options, command._say_nothing)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar_is_drawn_five_times_a_second_and_lines_stay(
    terminal, clock, monkeypatch
):
    out, err = Stream(), Stream()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", err)
    monkeypatch.setattr(err, "isatty", lambda: terminal)
    options = SimpleNamespace(steps=8, save_every=4)
    show = command._reporter(options, lambda losses: f"line {len(losses)}")
    for step in range(1, 9):
        clock.now += 0.15
        show(torch.arange(step) / 4)
    out, err = out.seen, err.seen
    bars = {1: 3, 3: 11, 5: 18, 7: 26, 8: 30} if terminal else {}
    drawn = [
        f"\r{'#' * size}{'.' * (30 - size)} {step} of 8  loss {(step - 1) / 4:.3f} "
        for step, size in bars.items()
    ]
    assert err == "".join(drawn)
    assert out == (f"\rline 4{' ' * 73}\n" if terminal else "line 4\n")


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


@pytest.mark.parametrize("keep", [[], ["--checkpoint", "/no/such/a.pt"]])
def test_ctrl_c_says_where_nothing_is_kept(text, capsys, monkeypatch, keep):
    def press(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "train", press)
    assert main([text, *TINY, *keep]) == 130
    assert capsys.readouterr().err == "\nstopped: nothing is kept\n"


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
    for about in ({}, {"about": {"width": 8}}, {"about": [8]}):
        save_checkpoint(nn.Linear(1, 1), tmp_path / "a.pt", **about)
        with pytest.raises(ValueError) as error:
            load_text_model(tmp_path / "a.pt")
        assert str(error.value) == (
            "expected a checkpoint of `python -m utils.training`, got "
            f"{tmp_path / 'a.pt'}, which does not say what it was trained on"
        )
    (tmp_path / "a.pt").write_bytes(b"half a file")
    with pytest.raises(ValueError, match="a.pt is no checkpoint"):
        load_text_model(tmp_path / "a.pt")


def test_the_command_is_that_of_the_module(text):
    command = [sys.executable, "-m", "utils.training", text, "--steps", "2", *TINY]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[-1].startswith("step 2  training loss ")


def other_text(path):
    other = path.with_name("other.txt")
    other.write_text(load_text()[3000:6000], encoding="utf-8")
    return [str(other)]


def half_a_file(path):
    path.write_bytes(path.read_bytes()[:-500])
    return []


@pytest.mark.parametrize(
    "change, said",
    [
        (lambda path: ["--heads", "4"], "another model: heads expected as 4, got 2"),
        (lambda path: ["--width", "16"], "another model: width expected as 16, got 8"),
        (lambda path: ["--merges", "8"], "another model: vocabulary expected as 264"),
        (other_text, "another model: text expected as SHA-256"),
        (half_a_file, "is no checkpoint: "),
        (lambda path: path.write_bytes(b"") and [], "is no checkpoint: "),
        (lambda path: path.write_bytes(b"x" * 99) and [], "is no checkpoint: "),
        (lambda path: save_checkpoint(nn.Linear(1, 1), path) or [], "another model: "),
        (lambda path: torch.save([1, 2], path) or [], "is no checkpoint: "),
        (lambda path: ["--checkpoint", str(path.parent)], "Is a directory"),
        (lambda path: ["--checkpoint", "/no/such/a.pt"], "/no/such: No such file"),
    ],
)
def test_a_checkpoint_that_will_not_do_is_an_error_of_one_line(
    text, tmp_path, capsys, change, said
):
    path = tmp_path / "a.pt"
    arguments = ["--steps", "2", *TINY, "--checkpoint", str(path)]
    assert main([text, *arguments]) == 0
    more = change(path) or []
    before, texts = path.read_bytes(), [a for a in more if a.endswith(".txt")]
    capsys.readouterr()
    options = [argument for argument in more if argument not in texts]
    assert main([*(texts or [text]), *arguments, *options]) == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ") and said in err and err.count("\n") == 1
    assert path.read_bytes() == before


@pytest.mark.parametrize("wrong", ["0", "-1", "1.5", "many"])
def test_a_number_of_steps_that_will_not_do_is_an_error(text, capsys, wrong):
    with pytest.raises(SystemExit) as error:
        main([text, f"--steps={wrong}"])
    assert error.value.code == 2
    assert f"expected a whole number from 1, got {wrong}" in capsys.readouterr().err


def test_help_fits_on_a_screen_and_gives_the_defaults(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    assert end.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40 and max(map(len, lines)) <= 80
    assert any(re.match(r" +--steps N +steps in all \(1000\)", line) for line in lines)


DEFAULTS = {
    "steps": 1000, "save_every": 100, "batch": 8, "accumulate": 1, "context": 64,
    "width": 96, "heads": 4, "layers": 2, "merges": 256, "lr": 0.0015, "dropout": 0.1,
    "seed": 0, "checkpoint": None,
}  # fmt: skip


def test_the_help_says_what_each_option_is_and_what_it_is_by_default(
    capsys, monkeypatch
):
    assert vars(command._options(["a.txt"])) == {"text": Path("a.txt"), **DEFAULTS}
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit):
        main(["--help"])
    usage, about, *options, notes = capsys.readouterr().out.split("\n\n")
    assert usage.startswith("usage: python -m utils.training [-h] [--checkpoint FILE]")
    assert usage.endswith("TEXT")
    assert about == "Train the course's GPT on a text, then let it write."
    assert notes == (
        "The last tenth of the text is held out. The training loss is the mean of the "
        "last 50 steps. Losses are in nats per token.\n"
    )
    lines = "\n".join(options).splitlines()
    for said in (
        " a file of text, in UTF-8",
        " a file to keep the training in: after a crash or Ctrl-C the same command "
        "goes on from it, to the same losses",
    ):
        assert [line for line in lines if line.endswith(said)], said
    for name, default in DEFAULTS.items():
        option = rf" +--{name.replace('_', '-')} [NX] +[a-z][a-z ,]* \({default}\)"
        if default is not None:
            assert [line for line in lines if re.fullmatch(option, line)], name


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


def test_windows_are_drawn_from_the_whole_text():
    inputs, targets = draw_windows(torch.arange(9), 4, 500, seed=0, number=0)
    assert set(inputs[:, 0].tolist()) == {0, 1, 2, 3, 4}
    assert targets.max() == 8


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="needs fork and waitid")
def test_killed_again_and_again_the_command_comes_to_the_same_losses(text):
    """Run in a process that has computed nothing yet, since it starts the others."""
    arguments = [text, "--steps", "200", "--save-every", "4", *TINY]
    command = [sys.executable, "-m", "tests.kill_training", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    steps, undisturbed, resumed = done.stdout.splitlines()
    assert undisturbed == resumed
    assert len(re.findall(r"\d+(?=[,\]])", steps)) >= 5, steps


def test_an_error_of_several_processes_is_said_once(tmp_path, capsys, monkeypatch):
    for rank in (0, 1):
        processes = contextlib.nullcontext((rank, 2))
        monkeypatch.setattr(command, "processes", lambda given=processes: given)
        assert main([str(tmp_path / "text.txt")]) == 2
    assert capsys.readouterr().err.count("error: ") == 1


@pytest.mark.parametrize("share", ["1", "-0.5", "much"])
def test_the_command_takes_a_share_below_1_as_dropout(share, capsys):
    assert command._options(["a.txt", "--dropout", "0"]).dropout == 0
    with pytest.raises(SystemExit):
        main(["a.txt", "--dropout", share])
    said = f"argument --dropout: expected a share below 1, got {share}\n"
    assert capsys.readouterr().err.endswith(said)


@pytest.mark.parametrize("option", ["--lr", "--seed"])
def test_a_word_is_no_number(option, capsys):
    with pytest.raises(SystemExit):
        main(["a.txt", option, "much"])
    assert f"argument {option}: invalid " in capsys.readouterr().err
