"""Each test pins one sentence about `utils.attention`."""

import copy
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from utils.attention import (
    CausalAttention,
    MultiHeadAttention,
    SelfAttention,
    attention_weights,
    causal_mask,
    context_vectors,
    dropout,
    masked_softmax,
    merge_heads,
    padding_mask,
    repeat_kv,
    scaled_dot_product_attention,
    softmax,
    split_heads,
)
from utils.cache import KeyValueCache
from utils.embeddings import alibi_bias, apply_rope

JOURNEY = torch.tensor(
    [
        [0.43, 0.15, 0.89],
        [0.55, 0.87, 0.66],
        [0.57, 0.85, 0.64],
        [0.22, 0.58, 0.33],
        [0.77, 0.25, 0.10],
        [0.05, 0.80, 0.55],
    ]
)
SUN = torch.tensor([[0.34, 0.22, 0.54], [0.53, 0.34, 0.98], [0.29, 0.54, 0.93]])


def random(*shape, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=dtype)


def query_key_value(leading=(2, 3)):
    """T = 5 queries, S = 7 keys, d_k = 11, d_v = 13."""
    return (
        random(*leading, 5, 11, seed=1).requires_grad_(),
        random(*leading, 7, 11, seed=2).requires_grad_(),
        random(*leading, 7, 13, seed=3).requires_grad_(),
    )


def random_mask(*shape, seed=4):
    """Random, with an empty first row and a full last one."""
    mask = random(*shape, seed=seed) > 0
    mask[..., 0, :] = False
    mask[..., -1, :] = True
    return mask


def multi_head(causal=True, p=0.0, d_in=6, qkv_bias=False):
    torch.manual_seed(0)
    layer = MultiHeadAttention(d_in, 10, 11, p, 2, qkv_bias=qkv_bias, causal=causal)
    return layer.double()


# Softmax and attention without weights


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_softmax_equals_torch_along_every_axis(dim):
    scores = random(3, 5, 7)
    torch.testing.assert_close(softmax(scores, dim), torch.softmax(scores, dim))


def test_softmax_stays_finite_for_scores_of_a_thousand():
    scores = torch.tensor([1000.0, 999.0, -1000.0])
    torch.testing.assert_close(softmax(scores), torch.softmax(scores, dim=-1))


def test_softmax_leaves_its_input_untouched():
    scores = random(3, 5)
    before = scores.clone()
    softmax(scores)
    assert torch.equal(scores, before)


def test_the_sunny_sentence_gives_the_numbers_of_the_curriculum():
    weights = attention_weights(SUN)[1]
    torch.testing.assert_close(
        weights, torch.tensor([0.2291, 0.4063, 0.3646]), atol=5e-5, rtol=0
    )
    torch.testing.assert_close(
        context_vectors(SUN)[1],
        torch.tensor([0.3990, 0.3854, 0.8610]),
        atol=5e-5,
        rtol=0,
    )


def test_context_vectors_follow_a_reordering_of_the_tokens():
    x, order = random(7, 5), torch.tensor([3, 0, 6, 1, 5, 2, 4])
    torch.testing.assert_close(context_vectors(x[order]), context_vectors(x)[order])


# Masks


def test_causal_mask_includes_the_current_token():
    assert causal_mask(7).diagonal().all()


def test_causal_mask_equals_the_lower_triangle():
    expected = torch.tensor([[j <= i for j in range(5)] for i in range(5)])
    assert torch.equal(causal_mask(5), expected)


def test_causal_mask_of_no_tokens_is_empty():
    assert causal_mask(0).shape == (0, 0)


def test_causal_mask_names_a_negative_size():
    with pytest.raises(ValueError, match="0 or more, got -1"):
        causal_mask(-1)


def test_padding_mask_is_true_on_real_tokens():
    expected = torch.tensor([[False] * 3, [True, True, False], [True] * 3])
    assert torch.equal(padding_mask(torch.tensor([0, 2, 3]), 3), expected)


@pytest.mark.parametrize("lengths", [[2, 5], [-1, 2]])
def test_padding_mask_names_a_length_out_of_range(lengths):
    with pytest.raises(ValueError, match="from 0 to 4, got"):
        padding_mask(lengths, 4)


def test_padding_mask_names_a_wrong_shape():
    with pytest.raises(ValueError, match=r"\(B,\), got \(1, 2\)"):
        padding_mask([[1, 2]], 4)


def test_masked_softmax_equals_torch_on_rows_that_may_attend():
    scores, mask = random(2, 5, 7), random_mask(2, 5, 7)
    expected = torch.softmax(scores.masked_fill(~mask, -torch.inf), dim=-1)
    rows = mask.any(dim=-1)
    torch.testing.assert_close(masked_softmax(scores, mask)[rows], expected[rows])


def test_masked_softmax_gives_zeros_to_an_empty_row():
    assert (masked_softmax(random(2, 5, 7), random_mask(2, 5, 7))[:, 0] == 0).all()


def test_masked_softmax_has_finite_gradients_with_an_empty_row():
    scores = random(5, 7).requires_grad_()
    masked_softmax(scores, random_mask(5, 7)).square().sum().backward()
    assert scores.grad.isfinite().all()


def test_leading_axes_that_do_not_fit_are_named():
    query, key = torch.zeros(2, 5, 3), torch.zeros(3, 7, 3)
    with pytest.raises(ValueError, match=r"axes that fit, got \[\(2, 5, 3\), \(3, 7"):
        scaled_dot_product_attention(query, key, key)


def test_masked_softmax_works_in_half_precision():
    weights = masked_softmax(random(5, 7).half(), causal_mask(7)[:5])
    assert weights.dtype == torch.float16 and weights.isfinite().all()


def test_masked_softmax_refuses_a_mask_of_numbers():
    with pytest.raises(ValueError, match="boolean mask, got torch.float32"):
        masked_softmax(torch.zeros(2, 2), torch.ones(2, 2))


def test_masked_softmax_names_a_mask_that_does_not_fit():
    with pytest.raises(ValueError, match=r"broadcasts to \(5, 7\), got \(7, 5\)"):
        masked_softmax(torch.zeros(5, 7), torch.ones(7, 5, dtype=torch.bool))


def test_masked_softmax_refuses_a_mask_with_more_axes_than_the_scores():
    with pytest.raises(ValueError, match=r"broadcasts to \(5, 7\), got \(2, 5, 7\)"):
        masked_softmax(torch.zeros(5, 7), torch.ones(2, 5, 7, dtype=torch.bool))


# Dropout


def test_dropout_keeps_the_mean():
    torch.manual_seed(0)
    assert abs(dropout(torch.ones(100_000), 0.3).mean() - 1) < 0.01


def test_dropout_scales_survivors_by_one_over_one_minus_p():
    torch.manual_seed(0)
    values = dropout(torch.ones(1000), 0.2).unique()
    torch.testing.assert_close(values, torch.tensor([0.0, 1.25]))


def test_dropout_of_one_leaves_nothing():
    assert torch.equal(dropout(torch.ones(5), 1.0), torch.zeros(5))


@pytest.mark.parametrize("p", [-0.1, 1.5])
def test_dropout_names_a_probability_out_of_range(p):
    with pytest.raises(ValueError, match=f"from 0 to 1, got {p}"):
        dropout(torch.ones(3), p)


# Scaled dot-product attention


@pytest.mark.parametrize("leading", [(), (2,), (2, 3)])
def test_attention_equals_torch_in_values_and_gradients(leading):
    inputs, twins = query_key_value(leading), query_key_value(leading)
    output, _ = scaled_dot_product_attention(*inputs)
    expected = F.scaled_dot_product_attention(*twins)
    torch.testing.assert_close(output, expected)
    output.square().sum().backward()
    expected.square().sum().backward()
    for ours, torchs in zip(inputs, twins, strict=True):
        torch.testing.assert_close(ours.grad, torchs.grad)


def test_masked_attention_equals_torch_on_rows_that_may_attend():
    query, key, value = query_key_value()
    mask = random_mask(2, 1, 5, 7)
    output, _ = scaled_dot_product_attention(query, key, value, mask)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    torch.testing.assert_close(output[..., 1:, :], expected[..., 1:, :])


def test_an_empty_row_gives_zeros_and_finite_gradients():
    query, key, value = query_key_value()
    output, weights = scaled_dot_product_attention(
        query, key, value, random_mask(2, 1, 5, 7)
    )
    output.square().sum().backward()
    assert (output[..., 0, :] == 0).all() and (weights[..., 0, :] == 0).all()
    assert all(t.grad.isfinite().all() for t in (query, key, value))


def test_rows_of_weights_sum_to_one():
    _, weights = scaled_dot_product_attention(*query_key_value())
    torch.testing.assert_close(weights.sum(dim=-1), torch.ones(2, 3, 5).double())


def test_one_token_attends_to_itself_alone():
    x = random(1, 3)
    output, weights = scaled_dot_product_attention(x, x, x)
    torch.testing.assert_close(output, x)
    assert weights.item() == 1


def test_the_order_of_keys_does_not_matter():
    query, key, value = query_key_value()
    order = torch.tensor([6, 2, 0, 4, 1, 5, 3])
    output, _ = scaled_dot_product_attention(query, key, value)
    shuffled, _ = scaled_dot_product_attention(
        query, key[..., order, :], value[..., order, :]
    )
    torch.testing.assert_close(shuffled, output)


def test_attention_leaves_its_inputs_untouched():
    inputs = query_key_value()
    before = [t.detach().clone() for t in inputs]
    scaled_dot_product_attention(*inputs, mask=random_mask(5, 7))
    assert all(torch.equal(a, b) for a, b in zip(inputs, before, strict=True))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((5, 3), (7, 2), (7, 2)), r"one width d_k, got \(5, 3\) and \(7, 2\)"),
        (((5, 3), (7, 3), (5, 3)), r"a value for each key, got \(7, 3\) and \(5, 3\)"),
        (((3,), (7, 3), (7, 3)), r"\(\.\.\., tokens, width\) three times, got"),
    ],
)
def test_attention_names_shapes_that_do_not_fit(shapes, message):
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(*(torch.zeros(shape) for shape in shapes))


# Layers


def test_self_attention_gives_the_numbers_of_seed_789():
    torch.manual_seed(789)
    output = SelfAttention(3, 2)(JOURNEY)
    expected = torch.tensor([[-0.0739, 0.0713], [-0.0754, 0.0693]])
    torch.testing.assert_close(output[[0, -1]], expected, atol=5e-5, rtol=0)


def test_causal_attention_gives_the_numbers_of_seed_123():
    torch.manual_seed(123)
    layer = CausalAttention(3, 2, context_length=6, dropout=0.0)
    output = layer(torch.stack((JOURNEY, JOURNEY)))
    expected = torch.tensor([[-0.4519, 0.2216], [-0.5299, -0.1081]])
    torch.testing.assert_close(output[1, [0, -1]], expected, atol=5e-5, rtol=0)


@pytest.mark.parametrize("need_weights", [False, True])
def test_multi_head_attention_gives_the_numbers_of_seed_123(need_weights):
    torch.manual_seed(123)
    layer = MultiHeadAttention(3, 2, context_length=6, dropout=0.0, num_heads=2)
    output = layer(torch.stack((JOURNEY, JOURNEY)), need_weights=need_weights)
    output = output[0] if need_weights else output
    expected = torch.tensor([[0.3190, 0.4858], [0.2575, 0.4028]])
    torch.testing.assert_close(output[1, [0, -1]], expected, atol=5e-5, rtol=0)


def test_self_attention_equals_torch_on_its_projections():
    layer, x = SelfAttention(5, 7, qkv_bias=True).double(), random(2, 3, 11, 5)
    expected = F.scaled_dot_product_attention(
        layer.W_query(x), layer.W_key(x), layer.W_value(x)
    )
    torch.testing.assert_close(layer(x), expected)


@pytest.mark.parametrize(
    "layer",
    [
        CausalAttention(6, 10, 11, 0.0).double(),
        multi_head(),
    ],
    ids=["CausalAttention", "MultiHeadAttention"],
)
@pytest.mark.parametrize("changed", [3, 6])
def test_the_past_does_not_move_when_a_later_token_changes(layer, changed):
    x = random(2, 7, 6)
    other = x.clone()
    other[:, changed] = random(2, 6, seed=9)
    torch.testing.assert_close(layer(other)[:, :changed], layer(x)[:, :changed])
    assert not torch.allclose(layer(other)[:, changed], layer(x)[:, changed])


def test_multi_head_attention_without_mask_follows_a_reordering():
    layer, x = multi_head(causal=False), random(2, 7, 6)
    order = torch.tensor([3, 0, 6, 1, 5, 2, 4])
    torch.testing.assert_close(layer(x[:, order]), layer(x)[:, order])


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("padded", [True, False])
def test_asking_for_weights_changes_no_output_and_no_gradient(causal, padded):
    layer = multi_head(causal, qkv_bias=True)
    twin = copy.deepcopy(layer)
    x = random(3, 7, 6)
    padding = padding_mask([7, 4, 0], 7) if padded else None
    output, weights = layer(x, padding_mask=padding, need_weights=True)
    fused = twin(x, padding_mask=padding)
    torch.testing.assert_close(output, fused)
    assert weights.shape == (3, 2, 7, 7)
    output.square().sum().backward()
    fused.square().sum().backward()
    for ours, torchs in zip(layer.parameters(), twin.parameters(), strict=True):
        torch.testing.assert_close(ours.grad, torchs.grad)


def torch_twin(layer):
    """Give `nn.MultiheadAttention` the weights of our layer, whose widths are equal."""
    width = layer.out_proj.in_features
    twin = nn.MultiheadAttention(width, layer.num_heads, batch_first=True).double()
    projections = (layer.W_query, layer.W_key, layer.W_value)
    twin.load_state_dict(
        {
            "in_proj_weight": torch.cat([linear.weight for linear in projections]),
            "in_proj_bias": torch.zeros(3 * width),
            "out_proj.weight": layer.out_proj.weight,
            "out_proj.bias": layer.out_proj.bias,
        }
    )
    return twin


def test_cross_attention_equals_torch_with_a_padded_context():
    torch.manual_seed(0)
    layer = MultiHeadAttention(10, 10, 5, 0.0, num_heads=2, causal=False).double()
    x, context = random(3, 5, 10), random(3, 7, 10, seed=1)
    padding = padding_mask([7, 4, 1], 7)
    twin = torch_twin(layer)
    # In nn.MultiheadAttention True means "may not attend".
    expected, expected_weights = twin(
        x, context, context, key_padding_mask=~padding, average_attn_weights=False
    )
    output, weights = layer(x, context, padding, need_weights=True)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(weights, expected_weights)


def test_a_separate_context_is_seen_whole():
    layer, x, context = multi_head(), random(2, 5, 6), random(2, 7, 6, seed=1)
    _, weights = layer(x, context, need_weights=True, causal=False)
    assert (weights > 0).all()


def test_padding_moves_no_real_token():
    layer, x = multi_head(causal=False), random(2, 7, 6)
    padding = padding_mask([7, 4], 7)
    other = x.clone()
    other[1, 4:] = random(3, 6, seed=9)
    torch.testing.assert_close(
        layer(other, padding_mask=padding)[1, :4], layer(x, padding_mask=padding)[1, :4]
    )


def test_a_sentence_of_padding_alone_gives_the_bias_of_the_output_projection():
    layer = multi_head()
    output = layer(random(2, 7, 6), padding_mask=padding_mask([7, 0], 7))
    torch.testing.assert_close(output[1], layer.out_proj.bias.expand(7, 10))


@pytest.mark.parametrize("need_weights", [False, True])
def test_dropout_acts_in_training_alone(need_weights):
    layer, x = multi_head(p=0.5), random(2, 7, 6)

    def run():
        output = layer(x, need_weights=need_weights)
        return output[0] if need_weights else output

    assert not torch.equal(run(), run())
    layer.eval()
    assert torch.equal(run(), run())


def test_both_paths_keep_the_mean_under_dropout():
    layer, x = multi_head(p=0.5), random(1, 3, 6).expand(20_000, 3, 6)
    torch.manual_seed(0)
    with torch.no_grad():
        fused = layer(x).mean(dim=0)
        explicit = layer(x, need_weights=True)[0].mean(dim=0)
        torch.testing.assert_close(fused, layer.eval()(x)[0], atol=0.05, rtol=0)
    torch.testing.assert_close(fused, explicit, atol=0.05, rtol=0)


@pytest.mark.parametrize("num_tokens", [1, 4, 11])
def test_layers_take_every_length_up_to_the_context(num_tokens):
    x = random(2, num_tokens, 6)
    causal = CausalAttention(6, 10, 11, 0.0).double()
    assert causal(x).shape == multi_head()(x).shape == (2, num_tokens, 10)


def test_the_mask_of_causal_attention_follows_the_module_and_is_not_saved():
    layer = CausalAttention(3, 2, 6, 0.0)
    assert layer.to("meta").mask.is_meta
    assert "mask" not in layer.state_dict()


def test_layers_name_their_parameters_as_the_curriculum_does():
    names = ["W_query.weight", "W_key.weight", "W_value.weight"]
    assert list(SelfAttention(3, 2).state_dict()) == names
    assert list(CausalAttention(3, 2, 6, 0.0).state_dict()) == names
    assert list(MultiHeadAttention(3, 2, 6, 0.0, 2).state_dict()) == names + [
        "out_proj.weight",
        "out_proj.bias",
    ]


@pytest.mark.parametrize(
    "layer",
    [
        SelfAttention(3, 2),
        CausalAttention(3, 2, 6, 0.0),
        MultiHeadAttention(3, 2, 6, 0.0, 2),
    ],
    ids=["SelfAttention", "CausalAttention", "MultiHeadAttention"],
)
def test_layers_name_a_wrong_width(layer):
    with pytest.raises(ValueError, match=r"expected x \(.*T, 3\), got \(2, 5, 4\)"):
        layer(torch.zeros(2, 5, 4))


def test_a_projection_may_be_any_module():
    x = torch.ones(2, 5, 3)
    for layer in (
        SelfAttention(3, 3),
        CausalAttention(3, 3, 6, 0.0),
        MultiHeadAttention(3, 3, 6, 0.0, 1),
    ):
        layer.W_query = nn.Identity()
        assert layer(x).shape == x.shape
        with pytest.raises(ValueError, match=r"expected x \(.*T, 3\), got"):
            layer(torch.ones(2, 5, 4))


@pytest.mark.parametrize(
    "layer",
    [CausalAttention(3, 2, 6, 0.0), MultiHeadAttention(3, 2, 6, 0.0, 2)],
    ids=["CausalAttention", "MultiHeadAttention"],
)
def test_layers_name_a_sequence_longer_than_the_context(layer):
    with pytest.raises(ValueError, match="context_length = 6 tokens, got 7"):
        layer(torch.zeros(2, 7, 3))


def test_multi_head_attention_names_a_width_that_does_not_divide():
    with pytest.raises(ValueError, match="got width 8 and 3 heads"):
        MultiHeadAttention(8, 8, 6, 0.0, num_heads=3)


def test_multi_head_attention_names_a_context_of_another_batch():
    with pytest.raises(ValueError, match="each of 2 sentences, got 3"):
        multi_head(causal=False)(random(2, 5, 6), random(3, 5, 6))


@pytest.mark.parametrize(
    "mask", [torch.ones(2, 5), torch.ones(2, 6).bool(), torch.ones(5).bool()]
)
def test_multi_head_attention_names_a_padding_mask_that_does_not_fit(mask):
    with pytest.raises(ValueError, match=r"boolean padding mask \(B, S\) = \(2, 5\)"):
        multi_head()(random(2, 5, 6), padding_mask=mask)


# Heads


def test_head_h_owns_consecutive_features():
    x = random(2, 3, 10)
    heads = split_heads(x, num_heads=5)
    for h in range(5):
        assert torch.equal(heads[:, h], x[..., 2 * h : 2 * h + 2])


def test_merging_undoes_splitting():
    x = random(2, 3, 10)
    assert torch.equal(merge_heads(split_heads(x, num_heads=5)), x)


@pytest.mark.parametrize("num_heads", [3, 0])
def test_split_heads_names_a_width_that_does_not_divide(num_heads):
    with pytest.raises(ValueError, match=f"got width 8 and {num_heads} heads"):
        split_heads(torch.zeros(2, 5, 8), num_heads)


def test_merge_heads_names_a_tensor_without_heads():
    with pytest.raises(ValueError, match=r"heads \(B, H, T, K\), got \(2, 3\)"):
        merge_heads(torch.zeros(2, 3))


# Rotation, shared keys and values, cache


def grouped(num_kv_heads=2, **options):
    torch.manual_seed(0)
    layer = MultiHeadAttention(5, 24, 13, 0.0, 6, num_kv_heads=num_kv_heads, **options)
    return layer.double()


KINDS = [
    {},
    {"num_kv_heads": 6},
    {"rotary": True},
    {"alibi": True},
    {"window": 3},
    {"window": 4, "alibi": True, "num_kv_heads": 1},
]


def test_neighbouring_heads_share_keys_and_values():
    x = random(2, 3, 5, 7)
    assert torch.equal(repeat_kv(x, 2)[:, [0, 1]], x[:, [0, 0]])
    assert torch.equal(repeat_kv(x, 2)[:, [4, 5]], x[:, [2, 2]])


def test_repeat_kv_names_a_number_below_one():
    with pytest.raises(ValueError, match="n_rep of 1 or more, got 0"):
        repeat_kv(torch.zeros(2, 3, 5, 7), 0)


def test_shared_keys_and_values_equal_a_layer_that_repeats_them():
    layer, x = grouped(num_kv_heads=2), random(2, 7, 5)
    full = grouped(num_kv_heads=6)
    full.load_state_dict(
        {
            name: p.unflatten(0, (2, 4)).repeat_interleave(3, dim=0).flatten(0, 1)
            if name in ("W_key.weight", "W_value.weight")
            else p
            for name, p in layer.state_dict().items()
        }
    )
    torch.testing.assert_close(layer(x), full(x))


@pytest.mark.parametrize("num_kv_heads", [0, 4])
def test_heads_that_cannot_share_are_named(num_kv_heads):
    with pytest.raises(ValueError, match=f"got {num_kv_heads} and 6"):
        grouped(num_kv_heads)


def test_rotary_weights_depend_on_distances_alone():
    layer = grouped(rotary=True)
    x = random(1, 1, 5).expand(1, 9, 5)
    _, weights = layer(x, need_weights=True)
    ratio = weights[..., 8, 5] / weights[..., 8, 6]
    torch.testing.assert_close(
        weights[..., 5, 2] / weights[..., 5, 3], ratio, rtol=1e-5, atol=0
    )


def test_rotary_turns_as_apply_rope_does_with_the_base_of_the_layer():
    layer, x = grouped(rotary=True, rope_base=50.0), random(2, 7, 5)
    _, weights = layer(x, need_weights=True)
    query = apply_rope(split_heads(layer.W_query(x), 6), torch.arange(7), base=50.0)
    key = apply_rope(split_heads(layer.W_key(x), 2), torch.arange(7), base=50.0)
    _, expected = scaled_dot_product_attention(
        query, repeat_kv(key, 3), repeat_kv(key, 3), causal_mask(7)
    )
    torch.testing.assert_close(weights, expected, rtol=1e-5, atol=1e-6)


def test_rotary_tables_are_computed_once_follow_the_module_and_are_not_saved():
    layer = grouped(rotary=True)
    assert layer.tables.shape == (2, 13, 2)
    assert list(layer.state_dict()) == list(grouped().state_dict())
    with Made() as made:
        layer(random(2, 7, 5))
    assert not {"cos", "sin", "pow"} & made.functions
    assert layer.to("meta").tables.is_meta


def test_alibi_adds_its_bias_to_the_scores():
    layer, x = grouped(alibi=True), random(2, 7, 5)
    _, weights = layer(x, need_weights=True)
    query = split_heads(layer.W_query(x), 6)
    key = repeat_kv(split_heads(layer.W_key(x), 2), 3)
    scores = query @ key.mT / 2 + alibi_bias(6, 7)
    torch.testing.assert_close(weights, masked_softmax(scores, causal_mask(7)))


@pytest.mark.parametrize("window", [1, 3, 7, 20])
def test_a_window_hides_what_lies_further_back(window):
    _, weights = grouped(window=window)(random(2, 7, 5), need_weights=True)
    expected = torch.tensor([[0 <= i - j < window for j in range(7)] for i in range(7)])
    assert torch.equal(weights > 0, expected.expand(2, 6, 7, 7))


@pytest.mark.parametrize("options", [{"window": 3}, {"alibi": True}])
def test_window_and_alibi_without_a_causal_layer_are_named(options):
    with pytest.raises(ValueError, match="window and alibi with causal=True alone"):
        grouped(causal=False, **options)


def test_a_window_below_one_is_named():
    with pytest.raises(ValueError, match="window of 1 or more, got 0"):
        grouped(window=0)


@pytest.mark.parametrize("causal", [True, False])
def test_a_rotary_layer_names_a_sequence_longer_than_its_tables(causal):
    with pytest.raises(ValueError, match="context_length = 13 tokens, got 14"):
        grouped(causal=causal, rotary=True)(random(2, 14, 5))


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("pieces", [(1,) * 13, (5, 1, 7), (3, 10), (13,)])
def test_a_cache_changes_nothing(kind, need_weights, pieces):
    layer, x = grouped(**kind), random(2, 13, 5)
    cache = KeyValueCache(13, layer.window)
    outputs = [
        layer(piece, cache=cache, need_weights=need_weights)
        for piece in x.split(pieces, dim=1)
    ]
    outputs = [o[0] for o in outputs] if need_weights else outputs
    torch.testing.assert_close(torch.cat(outputs, dim=1), layer(x))
    assert len(cache) == 13


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_a_cache_changes_nothing_for_padded_sentences(kind):
    layer, x, cache = grouped(**kind), random(3, 13, 5), KeyValueCache(13)
    cache.window = layer.window
    padding = padding_mask([13, 9, 1], 13).flip(-1)
    outputs = [
        layer(x[:, [i]], padding_mask=padding[:, : i + 1], cache=cache)
        for i in range(13)
    ]
    expected = layer(x, padding_mask=padding)
    torch.testing.assert_close(torch.cat(outputs, dim=1), expected)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("need_weights", [True, False])
def test_a_token_behind_padding_alone_gets_zeros_in_every_kind(kind, need_weights):
    layer, x = grouped(**kind), random(3, 7, 5).requires_grad_()
    padding = padding_mask([7, 4, 0], 7).flip(-1)
    output = layer(x, padding_mask=padding, need_weights=need_weights)
    output = output[0] if need_weights else output
    empty = ~padding
    expected = layer.out_proj.bias.expand(int(empty.sum()), 24)
    torch.testing.assert_close(output[empty], expected)
    output.square().sum().backward()
    assert x.grad.isfinite().all()


# A context from elsewhere


def test_a_causal_layer_with_a_context_asks_what_is_meant():
    layer, x = grouped(), random(2, 7, 5)
    for context in (x, random(2, 5, 5)):
        with pytest.raises(ValueError, match="causal=False .* causal=True .* neither"):
            layer(x, context=context)


def test_a_causal_layer_told_so_attends_to_the_past_of_a_context():
    layer, x = grouped(), random(2, 7, 5)
    torch.testing.assert_close(layer(x, context=x, causal=True), layer(x))
    _, weights = layer(x[:, 4:], context=x, causal=True, need_weights=True)
    assert torch.equal(weights > 0, causal_mask(7)[4:].expand(2, 6, 3, 7))


def test_a_token_before_the_whole_context_gets_zeros():
    layer, x = grouped(), random(2, 7, 5)
    for need_weights in (True, False):
        output = layer(x, x[:, 4:], need_weights=need_weights, causal=True)
        output = output[0] if need_weights else output
        torch.testing.assert_close(output[:, :4], layer.out_proj.bias.expand(2, 4, 24))


def test_a_call_may_open_the_future():
    layer, twin, x = grouped(), grouped(causal=False), random(2, 7, 5)
    torch.testing.assert_close(layer(x, causal=False), twin(x))
    torch.testing.assert_close(twin(x, causal=True), layer(x))


@pytest.mark.parametrize("causal", [True, False])
def test_a_foreign_context_is_never_rotated(causal):
    x, context = random(2, 7, 5), random(2, 20, 5, seed=1)
    expected = grouped()(x, context, causal=causal)
    output = grouped(rotary=True)(x, context, causal=causal)
    torch.testing.assert_close(output, expected)


# Other projections


class LowRank(nn.Sequential):
    """A linear layer as the product of two narrow ones, with no `in_features`."""

    def __init__(self, d_in, rank, d_out):
        super().__init__(nn.Linear(d_in, rank, bias=False), nn.Linear(rank, d_out))


def test_projections_may_be_replaced():
    layer, x = multi_head(d_in=10), random(2, 7, 10)
    layer.W_query = layer.W_value = nn.Identity()
    layer.W_key = LowRank(10, 3, 10).double()
    heads = [split_heads(t, 2) for t in (x, layer.W_key(x), x)]
    expected = F.scaled_dot_product_attention(*heads, is_causal=True)
    torch.testing.assert_close(layer(x), layer.out_proj(merge_heads(expected)))


def test_projections_may_be_quantised():
    layer, x = multi_head(d_in=10).float(), random(2, 7, 10, dtype=torch.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch will move its quantisation elsewhere
        quantised = torch.ao.quantization.quantize_dynamic(copy.deepcopy(layer))
    assert not isinstance(quantised.W_query, nn.Linear)
    torch.testing.assert_close(quantised(x), layer(x), atol=0.05, rtol=0)


def test_a_replaced_projection_may_read_a_context_of_another_width():
    layer, x, context = multi_head(causal=False), random(2, 5, 6), random(2, 7, 3)
    layer.W_key, layer.W_value = (nn.Linear(3, 10).double() for _ in range(2))
    assert layer(x, context).shape == (2, 5, 10)


def test_widths_are_checked_with_replaced_projections_too():
    layer = multi_head(d_in=10)
    layer.W_query = nn.Identity()
    with pytest.raises(ValueError, match=r"x \(B, T, 10\), got \(2, 7, 6\)"):
        layer(random(2, 7, 6))
    layer.W_key = LowRank(10, 3, 12).double()
    with pytest.raises(ValueError, match=r"W_key to give \(B, T, 10\), got \(2, 7, 12"):
        layer(random(2, 7, 10))


# The fast path and the one that returns weights


def cached(layer, x, need_weights):
    """Read four tokens, then the others with what the cache keeps."""
    cache = KeyValueCache(13, layer.window)
    layer(x[:, :4], cache=cache)
    return layer(x[:, 4:], need_weights=need_weights, cache=cache)


CALLS = {
    "alone": lambda layer, x, n: layer(x, need_weights=n),
    "padded": lambda layer, x, n: layer(x, None, padding_mask([7, 4, 0], 7), n),
    "context": lambda layer, x, n: layer(x[:, :5], x, None, n, causal=False),
    "padded context": lambda layer, x, n: layer(
        x[:, :5], x, padding_mask([7, 4, 1], 7), n, causal=False
    ),
    "causal context": lambda layer, x, n: layer(x[:, :5], x, None, n, causal=True),
    "cached": cached,
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_every_path_gives_the_same_output_and_gradients(call, kind):
    results = []
    for need_weights in (False, True):
        layer, x = grouped(**kind), random(3, 7, 5).requires_grad_()
        output = CALLS[call](layer, x, need_weights)
        output = output[0] if need_weights else output
        output.square().sum().backward()
        results.append([output, x.grad, *(p.grad for p in layer.parameters())])
    torch.testing.assert_close(*results)


def test_the_fast_path_is_four_products_and_the_attention_of_torch():
    layer, x = multi_head(d_in=10), random(3, 7, 10)
    layer.out_proj.bias.data.zero_()
    twin = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    heads = [(x @ w.T).view(3, 7, 2, 5).transpose(1, 2) for w in twin[:3]]
    context = F.scaled_dot_product_attention(*heads, is_causal=True)
    expected = context.transpose(1, 2).reshape(3, 7, 10) @ twin[3].T
    output = layer(x)
    torch.testing.assert_close(output, expected)
    output.square().sum().backward()
    expected.square().sum().backward()
    for ours, floors in zip(layer.parameters(), twin[:4]):
        torch.testing.assert_close(ours.grad, floors.grad)


class Made(TorchDispatchMode):
    """Note all tensors that are made, and by which functions."""

    def __init__(self):
        super().__init__()
        self.tensors, self.functions = [], set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        self.functions.add(func.overloadpacket.__name__)
        tensors = made if isinstance(made, tuple) else (made,)
        self.tensors += [tensor for tensor in tensors if torch.is_tensor(tensor)]
        return made


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("rotary", [False, True])
def test_nothing_of_tokens_by_tokens_is_made_unless_weights_are_asked_for(
    need_weights, rotary
):
    layer, x = grouped(rotary=rotary), random(3, 11, 5)
    with Made() as made:
        output = layer(x, need_weights=need_weights)
        (output[0] if need_weights else output).square().sum().backward()
    squares = [t for t in made.tensors if list(t.shape).count(11) > 1]
    assert bool(squares) == need_weights


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("num_kv_heads", [1, 2])
@pytest.mark.parametrize("num_new", [1, 3])
def test_shared_keys_and_the_cache_are_not_copied(need_weights, num_kv_heads, num_new):
    layer = MultiHeadAttention(5, 384, 400, 0.0, 6, num_kv_heads=num_kv_heads)
    x, cache = random(1, 303, 5, dtype=torch.float32), KeyValueCache(400)
    layer(x[:, :300], cache=cache)
    known = (cache.key, cache.value, *layer.parameters())
    places = {tensor.untyped_storage().data_ptr() for tensor in known}
    with Made() as made:
        layer(x[:, :num_new], cache=cache, need_weights=need_weights)
    copies = [t for t in made.tensors if t.untyped_storage().data_ptr() not in places]
    assert max(tensor.numel() for tensor in copies) < 300 * 64  # the keys of one head


def test_a_cache_beyond_the_context_is_named_and_keeps_what_it_has():
    layer, cache = grouped(), KeyValueCache(13)
    layer(random(2, 11, 5), cache=cache)
    with pytest.raises(ValueError, match="context_length = 13 tokens, got 14"):
        layer(random(2, 3, 5), cache=cache)
    assert len(cache) == 11


def test_a_cache_without_causal_self_attention_is_named():
    with pytest.raises(ValueError, match="cache with causal self-attention alone"):
        multi_head(causal=False)(random(2, 5, 6), cache=KeyValueCache(13))
    x, cache = random(2, 5, 6), KeyValueCache(13)
    with pytest.raises(ValueError, match="cache with causal self-attention alone"):
        multi_head()(x, context=x, causal=True, cache=cache)


def test_a_cache_with_another_window_is_named():
    with pytest.raises(ValueError, match="a cache with window=3, got None"):
        grouped(window=3)(random(2, 5, 5), cache=KeyValueCache(13))


@pytest.mark.parametrize("shape", [(5, 1, 3, 3), (2, 2)])
def test_a_bias_that_does_not_fit_the_scores_is_refused(shape):
    x = torch.zeros(3, 4)
    with pytest.raises(ValueError, match="expected a bias that broadcasts to"):
        scaled_dot_product_attention(x, x, x, bias=torch.zeros(shape))
