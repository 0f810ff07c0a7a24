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

    def on_scores(self, scores):
        return scores

    def on_weights(self, weights):
        return F.dropout(weights, self.p, self.training)

    def on_output(self, output):
        return output

    def forward(self, x):
        parts = [self.W_query(x), self.W_key(x), self.W_value(x)]
        heads = [p.unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for p in parts]
        query, key, value = heads
        scores = query @ key.mT / key.shape[-1] ** 0.5
        blocked = ~self.mask[: x.shape[1], : x.shape[1]]
        scores = self.on_scores(scores).masked_fill(blocked, -torch.inf)
        weights = self.on_weights(torch.softmax(scores, dim=-1))
        merged = (weights @ value).transpose(1, 2).flatten(2)
        return self.on_output(self.out_proj(merged))


class Never(Causal):
    def on_weights(self, weights):
        return weights


class Always(Causal):
    def on_weights(self, weights):
        return F.dropout(weights, self.p)


class OnScores(Never):
    def on_scores(self, scores):
        return F.dropout(scores, self.p, self.training)


class OnScoresAsMask(Never):
    def on_scores(self, scores):
        dropped = torch.rand_like(scores) < self.p * self.training
        return scores.masked_fill(dropped & ~torch.eye(scores.shape[-1]).bool(), -1e9)


class RowsMadeToSumToOne(Causal):
    def on_weights(self, weights):
        kept = super().on_weights(weights)
        return kept / kept.sum(-1, keepdim=True).clamp(1e-9)


class OnOutput(Never):
    def on_output(self, output):
        return F.dropout(output, self.p, self.training)


class NotRescaled(Causal):
    def on_weights(self, weights):
        keep = torch.rand_like(weights) >= self.p
        return weights * keep if self.training else weights


class KeepsP(Causal):
    def on_weights(self, weights):
        return F.dropout(weights, 1 - self.p, self.training)


class Half(Causal):
    def on_weights(self, weights):
        return F.dropout(weights, 0.5, self.training)


class WholeRows(Causal):
    def on_weights(self, weights):
        rows = torch.ones(*weights.shape[:-1], 1)
        return weights * F.dropout(rows, self.p, self.training)


class SameForAll(Causal):
    def on_weights(self, weights):
        return weights * F.dropout(
            torch.ones(weights.shape[-2:]), self.p, self.training
        )


class SameEachTime(Causal):
    def on_weights(self, weights):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return super().on_weights(weights)


class OnValues(Never):
    def __init__(self, *build):
        super().__init__(*build)
        self.W_value.register_forward_hook(
            lambda layer, args, out: F.dropout(out, self.p, self.training)
        )


class OnInput(Never):
    def forward(self, x):
        return super().forward(F.dropout(x, self.p, self.training))


class KeepsItsWeights(Causal):
    def on_weights(self, weights):
        self.last_weights = super().on_weights(weights)
        return self.last_weights


class AllPositive(Causal):
    def __init__(self, *build):
        super().__init__(*build)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, 0.0, 1.0)


class UnusedLayer(Causal):
    def __init__(self, *build):
        super().__init__(*build)
        self.unused = nn.Linear(2, 2)


class Frozen(Causal):
    def __init__(self, *build):
        super().__init__(*build)
        self.W_key.weight.requires_grad = False


class Detached(Causal):
    def on_scores(self, scores):
        return scores.detach()


class PlainMask(Causal):
    def __init__(self, *build):
        super().__init__(*build)
        del self.mask
        self.mask = torch.ones(build[2], build[2]).tril().bool()


class Float32(Causal):
    def on_weights(self, weights):
        drop = torch.zeros(weights.shape)
        return F.dropout(weights.float() + drop, self.p, self.training)


@pytest.mark.parametrize("id", ["5.5", "6.3"])
@pytest.mark.parametrize(
    ("kind", "slug"),
    [
        (Causal, None),
        (KeepsItsWeights, None),
        (UnusedLayer, None),
        (AllPositive, None),
        (Never, "dropout-missing"),
        (Always, "dropout-in-eval"),
        (OnScores, "dropout-before-softmax"),
        (OnScoresAsMask, "rows-sum-to-one"),
        (RowsMadeToSumToOne, "rows-sum-to-one"),
        (OnOutput, "dropout-not-on-weights"),
        (NotRescaled, "dropout-not-rescaled"),
        (KeepsP, "dropout-other-share"),
        (Half, "dropout-other-share"),
        (WholeRows, "dropout-whole-rows"),
        (SameForAll, "dropout-same-mask"),
        (SameEachTime, "dropout-same-mask"),
        (OnValues, "dropout-not-on-weights"),
        (OnInput, "dropout-not-on-weights"),
        (Frozen, "no-gradient"),
        (Detached, "no-gradient"),
        (PlainMask, "mask-not-buffer"),
        (Float32, "float32-alone"),
    ],
)
def test_fact_is_named(kind, slug, id):
    result = check(id, kind)
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
