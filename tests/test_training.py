"""Each test pins one sentence about `utils.training`."""

import pytest
import torch
from torch import nn

from utils.training import train


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
    with pytest.raises(ValueError, match="at least one batch, got none"):
        train(nn.Linear(1, 1), [], fit, steps=1)
