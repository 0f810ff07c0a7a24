"""Each test pins one sentence about `utils.training.digits`."""

import torch
from torch import nn

from utils.training.digits import digits, fit, right


def test_each_digit_is_for_training_or_held_out_and_a_seed_makes_the_split():
    images, labels, known, unseen = digits(held_out=97, seed=1)
    assert len(unseen) == 97 and len(images) == len(labels)
    assert torch.cat([known, unseen]).sort().values.equal(torch.arange(1797))
    assert images.min() == 0 and images.max() == 1
    assert not digits(held_out=97, seed=2)[3].equal(unseen)


def test_a_matrix_learns_the_digits_that_it_was_fitted_to():
    images, labels, *_ = digits()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 10))
    before = right(model, images[:150], labels[:150])
    fit(model, 3e-2, images[:150], labels[:150])
    assert before < 0.3 and right(model, images[:150], labels[:150]) > 0.95


def test_right_is_the_share_of_labels_that_score_highest():
    scores = torch.eye(4)[[0, 1, 2, 2]]
    assert right(nn.Identity(), scores, torch.arange(4)) == 0.75
