"""The GPT and how it generates, `utils.model`."""

from functools import partial

import pytest
import torch
from torch import nn

from utils.attention import MultiHeadAttention
from utils.delta import DeltaAttention
from utils.latent import LatentAttention
from utils.model import GPT, generate, mean_loss, next_token_probs, top_p_probs

KINDS = [
    {},
    {"positions": "rotary", "num_kv_heads": 1},
    {"positions": "none", "num_kv_heads": 2},
    {"attention": LatentAttention, "latent_dim": 7, "positions": "rotary"},
    {"attention": DeltaAttention, "positions": "none", "gate": True},
    {"attention": [partial(DeltaAttention, gate=True), MultiHeadAttention]},
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


def test_top_p_keeps_one_token_at_least_and_with_1_all():
    for p, dtype in ((0.5, torch.float32), (1e-46, torch.float32), (1e-8, torch.half)):
        assert (top_p_probs(torch.zeros(2, dtype=dtype), p) > 0).sum() == 1
    assert (top_p_probs(torch.tensor([0.0, -40.0]), 1) > 0).all()
    probs = top_p_probs(torch.zeros(1000, dtype=torch.bfloat16), 0.4995)
    assert (probs > 0).sum() == 500 and probs.dtype == torch.float32


def test_one_row_of_logits_has_a_loss_and_so_have_70_000_in_float16():
    loss = mean_loss(torch.zeros(5), torch.tensor(3))
    torch.testing.assert_close(loss, torch.tensor(5.0).log())
    assert mean_loss(torch.zeros(70_000, 3).half(), torch.zeros(70_000).int()) < 1.1
    logits = torch.tensor([[0.0] * 5, [torch.nan] * 5])  # a row that doesn't count
    assert mean_loss(logits, torch.tensor([3, 9]), left_out=9) == loss


def both_ways(model, start, num_tokens, **options):
    """Write with a cache and without, from the same seed; assert that they agree."""
    texts = []
    for use_cache in (True, False):
        torch.manual_seed(5)
        texts.append(generate(model, start, num_tokens, use_cache=use_cache, **options))
    assert torch.equal(*texts)
    return texts[0]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_beyond_its_context_it_reads_the_last_tokens(kind):
    model = far_from_even(**kind)
    ids = both_ways(model, token_ids(2, 4), 20, top_k=1)
    assert ids.shape == (2, 24)
    for end in range(13, 24):
        window = ids[:, end - 13 : end]
        assert torch.equal(model(window)[:, -1].argmax(dim=-1), ids[:, end])


def test_dropout_is_off_while_it_writes_and_each_block_keeps_its_mode():
    model, start = far_from_even(dropout=0.5).train(), token_ids(2, 4)
    model.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    both_ways(model, start, 9, top_k=1)
    assert [module.training for module in model.modules()] == modes


def test_a_text_that_has_ended_is_padded_and_all_ended_texts_stop():
    model, start = far_from_even(), token_ids(3, 4)
    free = generate(model, start, 9, top_k=1)
    end = free[0, 5].item()  # the second new token of the first text
    texts = both_ways(model, start, 9, top_k=1, end_id=end)
    for text, whole in zip(texts, free):
        ends = [i for i in range(4, 13) if whole[i] == end]
        stop = ends[0] + 1 if ends else 13
        assert text[:stop].equal(whole[: len(text)][:stop])
        assert (text[stop:] == end).all()
    assert generate(model, start, 0) is not start
    short = generate(model, start[:1].int(), 9, top_k=1, end_id=end)
    assert short.shape[1] <= 6 and short.dtype == torch.int32


def test_a_tiny_temperature_chooses_among_the_likeliest():
    for dtype in (torch.float32, torch.float16):
        logits = torch.tensor([1.0, 3.0, 3.0, -torch.inf], dtype=dtype)
        for temperature in (1e-5, 1e-40, 5e-324):
            probs = next_token_probs(logits, temperature)
            assert probs.tolist() == [0, 0.5, 0.5, 0]
        assert next_token_probs(logits, 1e300)[3] == 0


def test_weights_begin_small_and_those_that_add_to_the_stream_smaller():
    first = gpt().blocks[0]
    outputs = first.attention.out_proj, first.feed_forward[2]
    for layer in (first.attention.W_query, first.feed_forward[0], *outputs):
        expected = 0.01 if layer in outputs else 0.02  # 0.02 / sqrt(2 * 2 blocks)
        assert layer.weight.std().item() == pytest.approx(expected, rel=0.1)
