"""Each test pins one sentence about `utils.training`."""

import pytest
import torch
from torch import nn

from utils.files import write_atomically
from utils.training import load_checkpoint, save_checkpoint, train


def fit(model, batch):
    inputs, targets = batch
    return (model(inputs) - targets).square().mean()


def line():
    inputs = torch.linspace(-1, 1, 11)[:, None]
    return inputs, 3 * inputs - 1


def test_training_finds_a_line():
    torch.manual_seed(0)
    model = nn.Linear(1, 1)
    losses = train(model, [line()], fit, steps=400, lr=0.05)
    assert losses[-1] < 1e-3 < losses[0]


def test_training_returns_a_loss_for_each_step():
    assert len(train(nn.Linear(1, 1), [line(), line()], fit, steps=7)) == 7


def test_training_goes_through_the_batches_again():
    seen = []

    def watch(model, batch):
        seen.append(batch)
        return model.weight.sum()

    train(nn.Linear(1, 1), [0, 1, 2], watch, steps=7)
    assert seen == [0, 1, 2, 0, 1, 2, 0]


def test_training_leaves_the_model_in_evaluation_mode():
    model = nn.Sequential(nn.Linear(1, 1), nn.Dropout(0.5))
    train(model, [line()], fit, steps=1)
    assert not model.training and not model[1].training


def test_an_interrupted_training_leaves_the_model_in_evaluation_mode():
    def stop(model, batch):
        raise KeyboardInterrupt

    model = nn.Linear(1, 1)
    with pytest.raises(KeyboardInterrupt):
        train(model, [line()], stop, steps=1)
    assert not model.training


def test_training_without_a_batch_is_an_error():
    with pytest.raises(ValueError, match="batches .* got none after 0 steps"):
        train(nn.Linear(1, 1), [], fit, steps=1)


def test_a_checkpoint_gives_the_weights_back(tmp_path):
    torch.manual_seed(0)
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    save_checkpoint(model, tmp_path / "model.pt")
    load_checkpoint(other, tmp_path / "model.pt")
    assert torch.equal(model.weight, other.weight)
    assert [path.name for path in tmp_path.iterdir()] == ["model.pt"]


def test_training_writes_a_checkpoint_at_the_end(tmp_path):
    model, other = nn.Linear(1, 1), nn.Linear(1, 1)
    train(model, [line()], fit, steps=7, checkpoint=tmp_path / "model.pt")
    load_checkpoint(other, tmp_path / "model.pt")
    assert torch.equal(model.weight, other.weight)


def test_an_interrupted_training_keeps_the_last_checkpoint_whole(tmp_path):
    model, other, steps = nn.Linear(1, 1), nn.Linear(1, 1), []

    def stop_later(model, batch):
        steps.append(model.weight.item())
        if len(steps) == 151:
            raise KeyboardInterrupt
        return fit(model, batch)

    with pytest.raises(KeyboardInterrupt):
        train(model, [line()], stop_later, steps=300, checkpoint=tmp_path / "model.pt")
    load_checkpoint(other, tmp_path / "model.pt")
    assert other.weight.item() == steps[100]


def test_a_write_that_fails_keeps_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.pt"
    write_atomically(path, b"old")

    def fail(*args):
        raise OSError("disk full")

    monkeypatch.setattr("utils.files.os.replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [file.name for file in tmp_path.iterdir()] == ["model.pt"]


@pytest.mark.parametrize("content", [b"", b"half a file"])
def test_a_damaged_checkpoint_is_named_and_changes_nothing(tmp_path, content):
    model, path = nn.Linear(1, 1), tmp_path / "model.pt"
    before = model.weight.clone()
    path.write_bytes(content)
    with pytest.raises(ValueError, match="model.pt is no checkpoint"):
        load_checkpoint(model, path)
    assert torch.equal(model.weight, before)


def test_the_checkpoint_of_another_model_is_named(tmp_path):
    save_checkpoint(nn.Linear(3, 2), tmp_path / "model.pt")
    with pytest.raises(ValueError, match=r"another model: .* got \(2, 3\)"):
        load_checkpoint(nn.Linear(5, 2), tmp_path / "model.pt")


def test_a_checkpoint_that_would_run_code_is_refused(tmp_path):
    torch.save({"weight": print}, tmp_path / "model.pt")
    with pytest.raises(ValueError, match="is no checkpoint"):
        load_checkpoint(nn.Linear(3, 2), tmp_path / "model.pt")
