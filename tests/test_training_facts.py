"""The checks of 5.5 and 6.3 name what the outputs of eval mode do not show."""

import itertools

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from utils.checks import check


class Causal(nn.Module):
    """Causal attention with the steps that dropout may go to, one head or several."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads=None):
        super().__init__()
        self.num_heads, self.p = num_heads or 1, dropout
        if d_out % self.num_heads:
            raise ValueError
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out) if num_heads else nn.Identity()
        allowed = torch.ones(context_length, context_length).tril().bool()
        self.register_buffer("mask", allowed)
        self.in_the_end()

    def in_the_end(self):
        pass

    def on_weights(self, weights):
        return F.dropout(weights, self.p, self.training)

    def on_input(self, x):
        return x

    on_scores = on_output = on_input

    def forward(self, x):
        x = self.on_input(x)
        parts = [self.W_query(x), self.W_key(x), self.W_value(x)]
        heads = [p.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for p in parts]
        query, key, value = heads
        scores = query @ key.mT / key.shape[-1] ** 0.5
        blocked = ~self.mask[: x.shape[1], : x.shape[1]]
        scores = self.on_scores(scores).masked_fill(blocked, -torch.inf)
        weights = self.on_weights(torch.softmax(scores, dim=-1))
        merged = (weights @ value).transpose(1, 2).flatten(2)
        return self.on_output(self.out_proj(merged))


def dropped(self, x, p=None, training=None):
    training = self.training if training is None else training
    return F.dropout(x, self.p if p is None else p, training)


def kept(self, x):
    return x


def left_out_of_scores(self, scores):
    out = torch.rand_like(scores) < self.p * self.training
    return scores.masked_fill(out & ~torch.eye(scores.shape[-1]).bool(), -1e9)


def rows_made_to_sum_to_one(self, weights):
    weights = dropped(self, weights)
    return weights / weights.sum(-1, keepdim=True).clamp(1e-9)


def not_rescaled(self, weights):
    keep = torch.rand_like(weights) >= self.p
    return weights * keep if self.training else weights


def same_each_time(self, weights):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return dropped(self, weights)


def kept_on_the_module(self, weights):
    self.last_weights = dropped(self, weights)
    return self.last_weights


def all_positive(self):
    for parameter in self.parameters():
        nn.init.uniform_(parameter, 0.0, 1.0)


def plain_mask(self):
    mask = self.mask
    del self.mask
    self.mask = mask


def on_values(self):
    self.W_value.register_forward_hook(lambda layer, args, x: dropped(self, x))


def frozen(self):
    self.W_key.requires_grad_(False)


ON_WEIGHTS = [  # what is done with the weights
    (dropped, None),
    (kept_on_the_module, None),
    (kept, "dropout-missing"),
    (lambda self, x: dropped(self, x, training=True), "dropout-in-eval"),
    (rows_made_to_sum_to_one, "rows-sum-to-one"),
    (not_rescaled, "dropout-not-rescaled"),
    (lambda self, x: dropped(self, x, 1 - self.p), "dropout-other-share"),
    (lambda self, x: dropped(self, x, 0.5), "dropout-other-share"),
    (lambda self, x: x * dropped(self, x[..., :1] * 0 + 1), "dropout-whole-rows"),
    (lambda self, x: x * dropped(self, torch.ones_like(x[0, 0])), "dropout-same-mask"),
    (same_each_time, "dropout-same-mask"),
    (lambda self, x: dropped(self, x.float()), "float32-alone"),
]
ELSEWHERE = [  # what is done where, and how the weights are treated
    ("on_scores", dropped, kept, "dropout-before-softmax"),
    ("on_scores", left_out_of_scores, kept, "rows-sum-to-one"),
    ("on_scores", lambda self, x: x.detach(), dropped, "no-gradient"),
    ("on_input", dropped, kept, "dropout-not-on-weights"),
    ("on_output", dropped, kept, "dropout-not-on-weights"),
    ("in_the_end", on_values, kept, "dropout-not-on-weights"),
    ("in_the_end", all_positive, dropped, None),
    ("in_the_end", plain_mask, dropped, "mask-not-buffer"),
    ("in_the_end", frozen, dropped, "no-gradient"),
]


@pytest.mark.parametrize("id", ["5.5", "6.3"])
@pytest.mark.parametrize(
    ("place", "way", "on_weights", "slug"),
    [*(("on_weights", way, way, slug) for way, slug in ON_WEIGHTS), *ELSEWHERE],
)
def test_fact_is_named(place, way, on_weights, slug, id):
    ways = {"on_weights": on_weights, place: way}
    result = check(id, type("Changed", (Causal,), ways))
    assert (result.diagnosis, result.passed) == (slug, slug is None), result.message


@pytest.mark.parametrize("id", ["5.5", "6.3"])
def test_right_dropout_is_never_named(id):
    seeds = itertools.count()

    class Seeded(Causal):
        def __init__(self, *build):
            torch.manual_seed(next(seeds))
            super().__init__(*build)

    for _ in range(6):  # each check builds two or three of them
        assert check(id, Seeded).passed
