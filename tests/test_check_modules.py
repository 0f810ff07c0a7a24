"""What a check says about a module before it looks at the output."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from utils.checks import check

NAMES = ("W_query", "W_key", "W_value")


class Right(nn.Module):
    """Self-attention as exercise 4.2 asks for it; the others change one thing."""

    def __init__(self, d_in, d_out):
        super().__init__()
        for name in NAMES:
            setattr(self, name, nn.Linear(d_in, d_out, bias=False))
        self.change(d_in, d_out)

    def change(self, d_in, d_out):
        pass

    def forward(self, x):
        query, key, value = self.W_query(x), self.W_key(x), self.W_value(x)
        return F.scaled_dot_product_attention(query, key, value)


class TransposedParameters(nn.Module):
    def __init__(self, d_in, d_out):
        super().__init__()
        for name in NAMES:
            setattr(self, name, nn.Parameter(torch.randn(d_out, d_in)))

    def forward(self, x):
        parts = [x @ getattr(self, name).T for name in NAMES]
        return F.scaled_dot_product_attention(*parts)


class OwnLinear(nn.Linear):
    pass


class Sequential(Right):
    def change(self, d_in, d_out):
        self.W_key = nn.Sequential(OwnLinear(d_in, d_out, bias=False), nn.Identity())


class Optional(Right):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__(d_in, d_out)


class ThroughACall(Right):
    def forward(self, x, need_weights=False):
        return super().forward(x.double().float())


class Orthogonal(Right):
    def change(self, d_in, d_out):
        nn.utils.parametrizations.orthogonal(self.W_query)


@pytest.mark.parametrize(
    "answer",
    [Right, TransposedParameters, Sequential, Optional, ThroughACall, Orthogonal],
)
def test_right_module_passes_however_it_is_built(answer):
    assert check("4.2", answer).passed


def changed(change):
    """Return the right module with one thing changed at the end of its building."""
    return type("Changed", (Right,), {"change": change})


def built(build, base=nn.Module):
    """Return a module that is built this way, and runs as the right one."""

    def __init__(self, d_in, d_out):
        base.__init__(self)
        build(self, d_in, d_out)

    return type("Built", (Right,), {"__init__": __init__})


def plain_tensors(self, d_in, d_out):
    for name in NAMES:
        setattr(self, name, torch.randn(d_in, d_out))


def buffers(self, d_in, d_out):
    for name in NAMES:
        self.register_buffer(name, torch.randn(d_in, d_out))


def listed(self, d_in, d_out):
    self.layers = [nn.Linear(d_in, d_out) for _ in range(3)]


def renamed(self, d_in, d_out):
    self.query = nn.Linear(d_in, d_out, bias=False)


def shared(self, d_in, d_out):
    self.W_key = self.W_query


def shared_storage(self, d_in, d_out):
    self.W_key.weight = nn.Parameter(self.W_query.weight.data)


def with_bias(self, d_in, d_out):
    self.W_value = nn.Linear(d_in, d_out)


def turned(self, d_in, d_out):
    self.W_query = nn.Linear(d_out, d_in, bias=False)


def unknown(self, d_in, d_out):
    self.W_query = nn.Linear(d_in, d_model, bias=False)  # noqa: F821


class Widths(Right):
    def __init__(self, d_model):
        super().__init__(d_model, d_model)


class Pair(Right):
    def forward(self, x):
        return super().forward(x), None


class Silent(Right):
    def forward(self, x):
        super().forward(x)


class NoForward(Right):
    forward = nn.Module.forward


@pytest.mark.parametrize(
    ("answer", "slug", "words"),
    [
        (Right(3, 5), "instance-not-class", "Right(…)"),
        (built(plain_tensors), "weights-not-registered", "no optimizer finds it"),
        (built(buffers), "weights-not-registered", "plain tensor and no parameter"),
        (built(listed), "modules-in-a-list", "`layers` is a Python list"),
        (built(renamed), "projection-missing", "no `W_query`, but query"),
        (changed(shared), "shared-weights", "`W_query` and `W_key`"),
        (changed(shared_storage), "shared-weights", "`W_query` and `W_key`"),
        (changed(with_bias), "unasked-bias", "`W_value`"),
        (changed(turned), "wrong-weight-shape", "leads from 3 to 5 features"),
        (built(plain_tensors, object), "super-init-missing", "super().__init__()"),
        (built(renamed, object), "super-init-missing", "super().__init__()"),
        (Widths, "wrong-signature", "(d_model)"),
        (Pair, "returns-a-tuple", "output alone"),
        (Silent, "returns-nothing", "`return`"),
        (object, "not-a-module", "nn.Module"),
        (Right.forward, "not-a-class", "function"),
        (NoForward, None, 'missing the required "forward" function'),
        (changed(unknown), None, "NameError: name 'd_model' is not defined"),
        (changed(unknown), None, "self.W_query = nn.Linear(d_in, d_model, bias=False)"),
    ],
)
def test_fact_about_a_module_is_named(answer, slug, words):
    result = check("4.2", answer)
    assert not result.passed and result.diagnosis == slug, result.message
    assert words in result.message
