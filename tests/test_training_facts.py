"""The facts about dropout and masks name what the outputs alone do not show."""

import bank
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from utils.checks.course import exercises
from utils.checks.modules import read
from utils.checks.training_facts import (
    NUM_TOKENS,
    TRAINING_FACTS,
    breaks_in_float64,
    dropout_in_eval,
    dropout_in_training,
    mask_is_plain,
)

ONE_HEAD = (3, 5, 7, 0.2)
TWO_HEADS = (3, 10, 7, 0.2, 2)


class Causal(nn.Module):
    """Causal attention with the steps that dropout may go to, one head or several."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads=1):
        super().__init__()
        self.num_heads, self.p = num_heads, dropout
        self.W_query = nn.Linear(d_in, d_out, bias=False)
        self.W_key = nn.Linear(d_in, d_out, bias=False)
        self.W_value = nn.Linear(d_in, d_out, bias=False)
        self.out_proj = nn.Linear(d_out, d_out) if num_heads > 1 else nn.Identity()
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
        return weights * F.dropout(torch.ones(3, 3), self.p, self.training)


class SameEachTime(Causal):
    def on_weights(self, weights):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return super().on_weights(weights)


class OnValues(Never):
    def forward(self, x):
        self.W_value.register_forward_hook(
            lambda layer, args, out: F.dropout(out, self.p, self.training)
        )
        return super().forward(x)


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
        self.mask = torch.ones(7, 7).tril().bool()


class Float32(Causal):
    def on_weights(self, weights):
        drop = torch.zeros(weights.shape)
        return F.dropout(weights.float() + drop, self.p, self.training)


def named(kind, build, facts=(dropout_in_eval, *TRAINING_FACTS)):
    torch.manual_seed(3)
    module = kind(*build).eval()
    names = ("W_query", "W_key", "W_value") + ("out_proj",) * (len(build) > 4)
    weights = read(module, build, names)
    found = filter(None, (look(module, weights) for look in facts))
    return next((name.slug for name in found), None)


@pytest.mark.parametrize("build", [ONE_HEAD, TWO_HEADS], ids=["one head", "two heads"])
@pytest.mark.parametrize(
    ("kind", "slug"),
    [
        (Causal, None),
        (Never, "dropout-missing"),
        (Always, "dropout-in-eval"),
        (OnScores, "dropout-before-softmax"),
        (OnScoresAsMask, "dropout-before-softmax"),
        (OnOutput, "dropout-not-on-weights"),
        (NotRescaled, "dropout-not-rescaled"),
        (KeepsP, "dropout-other-share"),
        (Half, "dropout-other-share"),
        (WholeRows, "dropout-whole-rows"),
        (SameForAll, "dropout-same-mask"),
        (SameEachTime, "dropout-same-mask"),
        (OnValues, "dropout-not-on-weights"),
        (OnInput, "dropout-not-on-weights"),
        (KeepsItsWeights, None),
        (UnusedLayer, None),
        (AllPositive, None),
        (Frozen, "no-gradient"),
        (Detached, "no-gradient"),
        (PlainMask, "mask-not-buffer"),
        (Float32, "float32-alone"),
    ],
)
def test_fact_is_named(kind, slug, build):
    assert named(kind, build) == slug


def test_each_fact_stands_alone():
    assert named(Always, ONE_HEAD, [dropout_in_eval]) == "dropout-in-eval"
    assert named(Never, ONE_HEAD, [dropout_in_training]) == "dropout-missing"
    assert named(PlainMask, ONE_HEAD, [mask_is_plain]) == "mask-not-buffer"
    assert named(Float32, ONE_HEAD, [breaks_in_float64]) == "float32-alone"


@pytest.mark.parametrize("build", [ONE_HEAD, TWO_HEADS], ids=["one head", "two heads"])
def test_right_dropout_is_never_named(build):
    for seed in range(20):
        torch.manual_seed(seed)
        module = Causal(*build)
        names = ("W_query", "W_key", "W_value") + ("out_proj",) * (len(build) > 4)
        weights = read(module, build, names)
        assert dropout_in_training(module, weights) is None, seed


LAYERS = ("4.2", "5.5", "6.3")  # those that project their input
MODULES = [e for e in exercises() if e.id in LAYERS]


@pytest.mark.parametrize("exercise", MODULES, ids=lambda exercise: exercise.id)
def test_facts_of_each_exercise_can_be_computed(exercise):
    """A fact that fails counts as not found, so it may not fail on a right module."""
    rights = [a for a in bank.answers() if a.right and a.exercise == exercise.id]
    build = exercise.cases[0].settings["build"]
    heads = build[4] if len(build) > 4 else 1
    assert build[0] >= NUM_TOKENS < build[1] // heads
    for entry in rights:
        module = entry.answer(*build).eval()
        weights = read(module, build, exercise.projections)
        for look in exercise.looks(right=True):
            assert look(module, weights) is None, entry.label
