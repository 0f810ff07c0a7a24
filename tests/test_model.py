"""Each test pins one sentence about `utils.model`."""

import math

import pytest
import torch
from torch import nn

from utils.model import (
    GPT,
    TransformerBlock,
    generate,
    next_token_loss,
    next_token_probs,
)


def gpt(**attention):
    torch.manual_seed(0)
    model = GPT(
        53, context_length=13, d_model=24, num_heads=6, num_layers=2, **attention
    )
    return model.eval()


def token_ids(*shape):
    return torch.randint(53, shape, generator=torch.Generator().manual_seed(1))


def test_a_block_adds_each_sublayer_to_its_input_behind_a_norm():
    torch.manual_seed(0)
    attention, feed_forward = nn.Linear(6, 6), nn.Linear(6, 6)
    block, x = TransformerBlock(attention, feed_forward, 6), torch.randn(2, 5, 6)
    middle = x + attention(block.norm1(x))
    expected = middle + feed_forward(block.norm2(middle))
    assert torch.equal(block(x), expected)


def test_the_first_loss_is_the_logarithm_of_the_vocabulary():
    inputs = token_ids(7, 13)
    loss = next_token_loss(gpt(), (inputs, inputs.flip(1)))
    assert abs(loss.item() - math.log(53)) < 0.05


def test_the_stream_begins_at_one_size_however_deep_the_model():
    seen = []
    for num_layers in (2, 32):
        torch.manual_seed(0)
        model = GPT(53, 13, 24, num_heads=6, num_layers=num_layers)
        model.norm.register_forward_pre_hook(lambda _, args: seen.append(args[0].std()))
        model(token_ids(7, 13))
    assert seen[1].item() == pytest.approx(seen[0].item(), rel=0.1)


def test_the_output_layer_shares_the_token_embedding():
    model = gpt()
    assert model.output.weight is model.embedding.token_embedding.weight


@pytest.mark.parametrize("changed", [4, 12])
def test_the_past_does_not_move_when_a_later_token_changes(changed):
    model, ids = gpt(), token_ids(2, 13)
    other = ids.clone()
    other[:, changed] = (other[:, changed] + 1) % 53
    torch.testing.assert_close(model(other)[:, :changed], model(ids)[:, :changed])
    assert not torch.allclose(model(other)[:, changed], model(ids)[:, changed])


def test_it_compiles_into_one_graph():
    model, ids = gpt(rotary=True), token_ids(7, 13)
    compiled = torch.compile(model, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(ids), model(ids))


def test_a_sequence_longer_than_the_context_is_named():
    with pytest.raises(ValueError, match="context_length = 13 tokens, got 14"):
        gpt()(token_ids(1, 14))


def test_an_id_outside_the_vocabulary_is_named():
    with pytest.raises(ValueError, match="from 0 to 52, got 53"):
        gpt()(torch.tensor([[53]]))


def test_probabilities_equal_a_softmax_of_the_scaled_logits():
    logits = torch.randn(3, 11, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(
        next_token_probs(logits, temperature=0.7), torch.softmax(logits / 0.7, dim=-1)
    )


def test_top_k_keeps_the_k_best_and_sums_to_one():
    logits = torch.randn(3, 11, generator=torch.Generator().manual_seed(0))
    probs = next_token_probs(logits, top_k=4)
    torch.testing.assert_close(probs.sum(dim=-1), torch.ones(3))
    kept = logits.topk(4, dim=-1).indices
    assert (probs.gather(-1, kept) > 0).all() and ((probs > 0).sum(dim=-1) == 4).all()


@pytest.mark.parametrize("temperature", [0.0, -1.0])
def test_a_temperature_that_is_not_positive_is_named(temperature):
    with pytest.raises(ValueError, match=f"above 0, got {temperature}"):
        next_token_probs(torch.zeros(5), temperature)


@pytest.mark.parametrize("top_k", [0, 6])
def test_a_top_k_out_of_range_is_named(top_k):
    with pytest.raises(ValueError, match=f"from 1 to 5, got {top_k}"):
        next_token_probs(torch.zeros(5), top_k=top_k)


@pytest.mark.parametrize(
    "attention", [{}, {"num_kv_heads": 2}, {"rotary": True, "num_kv_heads": 1}]
)
def test_a_cache_writes_the_same_tokens(attention):
    model, start = gpt(**attention), token_ids(3, 4)
    texts = []
    for use_cache in (True, False):
        torch.manual_seed(5)
        texts.append(generate(model, start, 9, use_cache=use_cache))
    assert torch.equal(*texts) and texts[0].shape == (3, 13)


def test_writing_keeps_the_beginning():
    start = token_ids(3, 4)
    assert torch.equal(generate(gpt(), start, 2)[:, :4], start)


def test_the_best_token_alone_is_greedy():
    model, start = gpt(), token_ids(3, 4)
    written = generate(model, start, 1, top_k=1)
    assert torch.equal(written[:, -1], model(start)[:, -1].argmax(dim=-1))


def test_writing_beyond_the_context_is_named():
    with pytest.raises(ValueError, match=r"context_length = 13 tokens, got 4 \+ 10"):
        generate(gpt(), token_ids(1, 4), 10)
