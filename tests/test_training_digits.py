"""Each test pins one sentence about `utils.training.digits`."""

import torch

from utils.training.digits import digits


def test_each_digit_is_for_training_or_held_out_and_a_seed_makes_the_split():
    images, labels, known, unseen = digits(held_out=97, seed=1)
    assert len(unseen) == 97 and len(images) == len(labels)
    assert torch.cat([known, unseen]).sort().values.equal(torch.arange(1797))
    assert images.min() == 0 and images.max() == 1
    assert not digits(held_out=97, seed=2)[3].equal(unseen)
