"""What a check says about a module however it is built, and of what is no module."""

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


class InASequence(Right):
    def __init__(self, d_in, d_out, qkv_bias=False):
        super().__init__(d_in, d_out)
        self.W_key = nn.Sequential(nn.Linear(d_in, d_out, bias=False), nn.Identity())


@pytest.mark.parametrize("answer", [TransposedParameters, InASequence])
def test_right_module_passes_however_it_is_built(answer):
    assert check("4.2", answer).passed


@pytest.mark.parametrize(
    ("answer", "slug", "words"),
    [
        (Right(3, 5), "instance-not-class", "Right(…)"),
        (dict, "not-a-module", "nn.Module"),
        (Right.forward, "not-a-class", "function"),
    ],
)
def test_what_is_no_class_of_modules_is_named(answer, slug, words):
    result = check("4.2", answer)
    assert result.diagnosis == slug, result.message
    assert words in result.message


def test_error_in_the_constructor_is_shown_with_its_line():
    class Broken(nn.Module):
        def __init__(self, d_in, d_out):
            super().__init__()
            self.W_query = nn.Linear(d_in, d_model, bias=False)  # noqa: F821

    message = check("4.2", Broken).message
    assert "NameError: name 'd_model' is not defined" in message
    assert "self.W_query = nn.Linear(d_in, d_model, bias=False)" in message
