"""Each test pins one claim about `utils.model`."""

import pytest
import torch
from torch import nn

from utils.model import GPT, generate, next_token_probs, top_p_probs

KINDS = [
    {},
    {"positions": "rotary", "num_kv_heads": 1},
    {"positions": "none", "num_kv_heads": 2},
]


def gpt(**options):
    torch.manual_seed(0)
    return GPT(53, 13, d_model=24, num_heads=6, num_layers=2, **options).eval()


def far_from_even(**options):
    """Return a model with large weights: its best token is best by far."""
    model = gpt(**options)
    for parameter in model.parameters():
        if parameter.dim() == 2:
            nn.init.normal_(parameter, std=0.5)
    return model


def token_ids(*shape):
    return torch.randint(53, shape, generator=torch.Generator().manual_seed(1))


def test_top_p_keeps_the_fewest_that_reach_p():
    logits = torch.tensor([[0.1, 0.5, 0.15, 0.25], [0.25, 0.25, 0.25, 0.25]]).log()
    kept = top_p_probs(logits, 0.7) > 0
    assert kept.tolist() == [[False, True, False, True], [True, True, True, False]]
    assert (top_p_probs(logits, 0.01) > 0).sum(dim=-1).tolist() == [1, 1]
    assert (top_p_probs(torch.zeros(2), 0.5) > 0).sum() == 1  # which reaches it exactly


def both_ways(model, start, num_tokens, **options):
    """Write with a cache and without, from the same seed; assert that they agree."""
    texts = []
    for use_cache in (True, False):
        torch.manual_seed(5)
        texts.append(generate(model, start, num_tokens, use_cache=use_cache, **options))
    assert torch.equal(*texts)
    return texts[0]


def test_writing_is_without_dropout_and_the_model_keeps_its_mode():
    model = gpt(dropout=0.5).train()
    text = both_ways(model, token_ids(3, 4), 9)
    assert model.training
    torch.manual_seed(5)
    assert torch.equal(text, generate(model.eval(), token_ids(3, 4), 9))


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_beyond_its_context_it_reads_the_last_tokens(kind):
    model = far_from_even(**kind)
    written = both_ways(model, token_ids(2, 4), 20, top_k=1)
    assert written.shape == (2, 24)
    for end in range(13, 24):
        seen = written[:, end - 13 : end]
        assert torch.equal(model(seen)[:, -1].argmax(dim=-1), written[:, end])


def choose(**options):
    next_token_probs(torch.zeros(5), **options)


def read(num_tokens):
    gpt()(token_ids(1, num_tokens))


def write_on(token_ids):
    generate(gpt(), torch.tensor(token_ids), 1)


@pytest.mark.parametrize(
    "function, options, message",
    [
        (choose, {"top_k": 6}, "from 1 to 5, got 6"),
        (choose, {"top_p": 1.5}, "above 0 and up to 1, got 1.5"),
        (choose, {"temperature": float("nan")}, "finite temperature above 0"),
        (choose, {"temperature": -1.0}, "finite temperature above 0"),
        (read, {"num_tokens": 14}, "context_length = 13 tokens, got 14"),
        (write_on, {"token_ids": ((), ())}, r"one or more each, got \(2, 0\)"),
        (gpt, {"positions": "absolute"}, "expected positions from .* got 'absolute'"),
    ],
)
def test_an_option_that_does_not_fit_is_named(function, options, message):
    with pytest.raises(ValueError, match=message):
        function(**options)
