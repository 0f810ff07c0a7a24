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


class PlainTensors(Right):
    def __init__(self, d_in, d_out):
        nn.Module.__init__(self)
        for name in NAMES:
            setattr(self, name, torch.randn(d_in, d_out))


class Buffers(Right):
    def __init__(self, d_in, d_out):
        nn.Module.__init__(self)
        for name in NAMES:
            self.register_buffer(name, torch.randn(d_in, d_out))


class Listed(Right):
    def __init__(self, d_in, d_out):
        nn.Module.__init__(self)
        self.layers = [nn.Linear(d_in, d_out) for _ in range(3)]


class Renamed(Right):
    def __init__(self, d_in, d_out):
        nn.Module.__init__(self)
        self.query = nn.Linear(d_in, d_out, bias=False)


class Shared(Right):
    def change(self, d_in, d_out):
        self.W_key = self.W_query


class SharedStorage(Right):
    def change(self, d_in, d_out):
        self.W_key.weight = nn.Parameter(self.W_query.weight.data)


class Bias(Right):
    def change(self, d_in, d_out):
        self.W_value = nn.Linear(d_in, d_out)


class Turned(Right):
    def __init__(self, d_in, d_out):
        super().__init__(d_out, d_in)


class NoSuper(nn.Module):
    def __init__(self, d_in, d_out):
        self.W_query = torch.randn(d_in, d_out)


class NoSuperLayers(nn.Module):
    def __init__(self, d_in, d_out):
        self.W_query = nn.Linear(d_in, d_out)


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


class Unknown(Right):
    def change(self, d_in, d_out):
        self.W_query = nn.Linear(d_in, d_model, bias=False)  # noqa: F821


@pytest.mark.parametrize(
    ("answer", "slug", "words"),
    [
        (Right(3, 5), "instance-not-class", "Right(…)"),
        (PlainTensors, "weights-not-registered", "no optimizer finds it"),
        (Buffers, "weights-not-registered", "plain tensor and no parameter"),
        (Listed, "modules-in-a-list", "`layers` is a Python list"),
        (Renamed, "projection-missing", "no `W_query`, but query"),
        (Shared, "shared-weights", "`W_query` and `W_key`"),
        (SharedStorage, "shared-weights", "`W_query` and `W_key`"),
        (Bias, "unasked-bias", "`W_value`"),
        (Turned, "wrong-weight-shape", "leads from 3 to 5 features"),
        (NoSuper, "super-init-missing", "super().__init__()"),
        (NoSuperLayers, "super-init-missing", "super().__init__()"),
        (Widths, "wrong-signature", "(d_model)"),
        (Pair, "returns-a-tuple", "output alone"),
        (Silent, "returns-nothing", "`return`"),
        (object, "not-a-module", "nn.Module"),
        (Right.forward, "not-a-class", "function"),
        (NoForward, None, 'missing the required "forward" function'),
        (Unknown, None, "NameError: name 'd_model' is not defined"),
        (Unknown, None, "self.W_query = nn.Linear(d_in, d_model, bias=False)"),
    ],
)
def test_fact_about_a_module_is_named(answer, slug, words):
    result = check("4.2", answer)
    assert not result.passed and result.diagnosis == slug, result.message
    assert words in result.message
