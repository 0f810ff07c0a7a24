"""Tests of `utils.training.text`, the command that trains a GPT on a text."""

import math
import re
import shutil
import signal
from pathlib import Path

import pytest
import torch

from utils.data import load_text
from utils.files import DATA
from utils.model import generate
from utils.training import text as command
from utils.training.text import load_tales_model, load_text_model, main

TINY = "--width 8 --heads 2 --layers 1 --context 8 --batch 2 --merges 9".split()
LAST_LINE = r"step 12  training loss \d\.\d{4}  held-out loss \d\.\d{4}"


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "text.txt"
    path.write_text(load_text()[:3000], encoding="utf-8")
    return str(path)


@pytest.fixture(autouse=True)
def without_gpu(monkeypatch):
    """Compute on the CPU, so that a sample can be drawn again there."""
    monkeypatch.setattr(command, "has_own_gpu", lambda: False)


def test_command_prints_reports_a_sample_and_the_losses(text, capsys):
    assert main([text, "--steps", "12", "--save-every", "5", *TINY]) == 0
    out, err = capsys.readouterr()
    first, *lines = out.splitlines()
    assert re.fullmatch(r"[\d,]+ tokens, [\d,]+ held out, [\d,]+ parameters", first)
    assert [line.split("  ")[0] for line in lines[:2]] == ["step 5", "step 10"]
    assert re.fullmatch(LAST_LINE, lines[-1])
    held_out = load_text()[:3000][2700:]
    assert lines[3][:1] == held_out[:1]
    assert err == ""


def test_ctrl_c_saves_and_the_same_command_continues(
    text, tmp_path, capsys, monkeypatch
):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job may lack it
    arguments = [text, "--steps", "12", *TINY, "--checkpoint", str(tmp_path / "a.pt")]
    main([text, "--steps", "12", *TINY])
    expected = capsys.readouterr().out.splitlines()[-1]
    loss, batches = command.next_token_loss, []

    def loss_with_ctrl_c(model, batch):
        batches.append(batch)
        if len(batches) == 7:
            signal.raise_signal(signal.SIGINT)
        return loss(model, batch)

    monkeypatch.setattr(command, "next_token_loss", loss_with_ctrl_c)
    assert main(arguments) == 130
    message = f"\nstopped: the same command continues from {tmp_path / 'a.pt'}\n"
    assert capsys.readouterr().err == message
    assert main(arguments) == 0
    assert capsys.readouterr().out.splitlines()[-1] == expected


NOT_UTF_8 = "text.txt is not a text in UTF-8: save it as UTF-8 in an editor"


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "No such file or directory: "),
        ("Schöne Wörter".encode("latin-1"), NOT_UTF_8),
        (b"too short", "too short: expected more than --context 64 tokens to train on"),
    ],
)
def test_unusable_text_is_an_error_of_one_line(tmp_path, capsys, content, message):
    path = tmp_path / "text.txt"
    if content is not None:
        path.write_bytes(content)
    assert main([str(path)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: ") and message in err and str(path) in err
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize(
    "arguments, message",
    [
        ("", "one of the arguments TEXT --write --export is required"),
        ("no.txt --write a", "--write: not allowed with argument TEXT"),
        ("--write a --export b", "--export: not allowed with argument --write"),
        ("--export b", "--export needs --checkpoint FILE"),
        ("--write a --held-out b", "--held-out has no effect here"),
        ("no.txt --tokens 5", "--tokens has no effect here"),
        ("no.txt --heads 5", "divisible by the number of heads, got width 96 and 5"),
        ("no.txt --lr nan", "expected a finite --lr from 0 to 1, got nan"),
        (f"no.txt --seed {2**70}", "expected --seed to be a whole number of 0 or"),
        ("no.txt --save-every 0", "expected --save-every to be a whole number of 1"),
    ],
)
def test_options_that_do_not_fit_are_refused_before_anything_is_read(
    arguments, message, capsys
):
    with pytest.raises(SystemExit, match="2"):
        main(arguments.split())
    assert message in capsys.readouterr().err


def test_checkpoint_of_the_command_can_be_loaded(text, tmp_path, capsys):
    path = tmp_path / "a.pt"
    main([text, "--steps", "12", "--lr", "0.1", *TINY, "--checkpoint", str(path)])
    out = capsys.readouterr().out
    model, encode, decode = load_text_model(path)
    content = Path(text).read_text(encoding="utf-8")
    assert decode(encode(content)) == content
    assert len(encode(content)) < len(content)
    assert not model.training and model.context_length == 8
    assert model.blocks[0].attention.dropout_p == 0
    held_out = torch.tensor([encode(content[2700:])])
    torch.manual_seed(0)
    sample = decode(generate(model, held_out[:, :4], 150, 0.8)[0].tolist())
    assert f"parameters\n\n{sample}\n\nstep 12 " in out


def test_exported_model_is_half_as_precise_and_writes_the_same(text, tmp_path, capsys):
    checkpoint, folder = str(tmp_path / "a.pt"), tmp_path / "my model"
    main([text, "--steps", "2", *TINY, "--checkpoint", checkpoint])
    assert main(["--checkpoint", checkpoint, "--export", str(folder)]) == 0
    capsys.readouterr()
    outputs = []
    for path in checkpoint, str(folder):
        prompt = ["--write", "The shop", "--tokens", "30", "--temperature", "0.01"]
        assert main([*prompt, "--checkpoint", path]) == 0
        outputs.append(capsys.readouterr().out)
    assert outputs[0] == outputs[1] and outputs[0].startswith("The shop")
    exported, original = (load_text_model(path)[0] for path in (folder, checkpoint))
    for ours, theirs in zip(exported.parameters(), original.parameters()):
        torch.testing.assert_close(ours, theirs, atol=1e-3, rtol=1e-3)


def test_tales_model_reads_prose_better_than_chance_and_leaves_the_seed_alone():
    torch.manual_seed(0)
    expected = torch.rand(1)
    torch.manual_seed(0)
    model, encode, decode = load_tales_model()
    assert torch.rand(1) == expected
    story = load_text()[:2000]
    ids = encode(story)
    assert decode(ids) == story
    loss = command.held_out_loss(model, torch.tensor(ids), context_length=200)
    bits_per_byte = loss / math.log(2) * len(ids) / len(story.encode())
    assert bits_per_byte < 2.6  # single tokens alone cost about 2.9


def test_held_out_windows_do_not_overlap_and_come_from_all_of_a_long_text(monkeypatch):
    def first_ids(model, batch):
        return batch[0][:, 0].double().mean()

    monkeypatch.setattr(command, "next_token_loss", first_ids)
    model = command.GPT(2, 5, d_model=2, num_heads=1, num_layers=0)
    for num_ids, starts in ((21, range(0, 20, 5)), (2561, range(0, 2560, 20))):
        mean = command.held_out_loss(model, torch.arange(num_ids).to(torch.uint16), 5)
        assert mean == sum(starts) / len(starts)
    with pytest.raises(TypeError, match="model as a Module, got int"):
        command.held_out_loss(3, torch.arange(21), 5)


@pytest.mark.parametrize("name", ["model.safetensors", "config.json"])
def test_damaged_or_missing_file_of_a_model_is_an_error_that_names_it(name, tmp_path):
    for file in "model.safetensors", "config.json":
        shutil.copy(DATA / "tales" / file, tmp_path)
    content = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=name):
        load_text_model(tmp_path)
    with pytest.raises(ValueError, match="utils.training`: expected vocabulary"):
        load_text_model(DATA / "tiny_gpt2")
    (tmp_path / name).unlink()
    with pytest.raises(FileNotFoundError, match=name):
        load_text_model(tmp_path)
