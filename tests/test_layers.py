"""What holds for all attention layers of `utils`."""

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tests.small_layers import CACHED, random
from utils.attention import CausalAttention
from utils.experiments import leak_test

CAUSAL = {"one head": CausalAttention} | CACHED
in_every_causal_layer = pytest.mark.parametrize("kind", CAUSAL)
in_every_layer_with_a_cache = pytest.mark.parametrize("kind", CACHED)


def built(kind, dropout=0.0):
    """Return a layer (B, T, 5) -> (B, T, 24) for up to 13 tokens."""
    torch.manual_seed(0)
    return CAUSAL[kind](5, 24, 13, dropout).double()


@in_every_causal_layer
def test_no_output_depends_on_a_later_token_whatever_the_dropout_and_the_mode(kind):
    model = nn.Sequential(built(kind, dropout=0.5), nn.Dropout(0.5))
    model[0].eval()
    assert leak_test(model, random(2, 7, 5)) < 1e-6
    assert [part.training for part in (model, *model)] == [True, False, True]


@pytest.mark.parametrize("mode", [True, False])
def test_a_leak_in_a_single_mode_is_found(mode):
    class Leak(nn.Module):
        def forward(self, x):
            return x.flip(1) if self.training == mode else x

    assert leak_test(Leak(), random(2, 7, 5)) > 0.1


@in_every_layer_with_a_cache
def test_a_layer_that_fails_midway_leaves_its_cache_and_modes_as_they_were(kind):
    layer, x = built(kind, dropout=0.5), random(2, 7, 5)
    cache, fail = layer.new_cache(13), layer.out_proj.register_forward_pre_hook
    fail(lambda *inputs: 1 / 0)
    for call in (lambda: layer(x, cache=cache), lambda: leak_test(layer, x)):
        with pytest.raises(ZeroDivisionError):
            call()
    assert (len(cache), layer.training, layer.out_proj.training) == (0, True, True)


@in_every_causal_layer
def test_dropout_acts_in_training_alone(kind):
    layer, x = built(kind, dropout=0.5), random(2, 7, 5)
    assert not torch.equal(layer(x), layer(x))
    layer.eval()
    assert torch.equal(layer(x), layer(x))


@in_every_causal_layer
def test_every_weight_is_trained(kind):
    layer = built(kind)
    layer(random(2, 7, 5)).square().sum().backward()
    for name, weight in layer.named_parameters():
        if name != "W_key.bias":  # it moves all scores of a row alike
            assert weight.grad.abs().max() > 0, name


@in_every_layer_with_a_cache
@pytest.mark.parametrize("pieces", [(1,) * 13, (5, 1, 7)])
def test_a_cache_changes_nothing(kind, pieces):
    layer, x = built(kind), random(3, 13, 5)
    cache = layer.new_cache(13)
    outputs = [layer(piece, cache=cache) for piece in x.split(pieces, dim=1)]
    torch.testing.assert_close(torch.cat(outputs, 1), layer(x), atol=1e-10, rtol=0)
    assert len(cache) == 13


class Squares(TorchDispatchMode):
    """Notes whether a tensor is made with two axes of 13 tokens."""

    has_square = False

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for t in result if isinstance(result, tuple) else (result,):
            self.has_square |= torch.is_tensor(t) and list(t.shape).count(13) > 1
        return result


@in_every_layer_with_a_cache
def test_a_step_of_decoding_makes_no_matrix_of_tokens_by_tokens(kind):
    layer, x = built(kind), random(2, 13, 5)
    cache = layer.new_cache(13)
    layer(x[:, :12], cache=cache)
    with Squares() as squares:
        layer(x[:, 12:], cache=cache)
    assert not squares.has_square


@pytest.mark.parametrize("kind", ["heads", "rotary", "latents"])
@pytest.mark.parametrize("need_weights", [False, True])
def test_only_weights_that_are_asked_for_are_made(kind, need_weights):
    layer, x = built(kind), random(2, 13, 5)
    with Squares() as squares:
        output = layer(x, need_weights=need_weights)
        (output[0] if need_weights else output).square().sum().backward()
    assert squares.has_square == need_weights


@in_every_causal_layer
def test_autocast_computes_in_bfloat16_about_what_float32_computes(kind):
    layer, x = built(kind).float(), random(2, 7, 5).float().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        output = layer(x)
    output.float().square().sum().backward()
    assert output.dtype == torch.bfloat16 and x.grad.isfinite().all()
    torch.testing.assert_close(output.float(), layer(x), atol=0.05, rtol=0.05)


@in_every_layer_with_a_cache
def test_what_is_padded_on_the_left_comes_out_as_alone(kind):
    layer, x = built(kind), random(2, 7, 5)
    real = torch.tensor([[False] * 3 + [True] * 4, [True] * 7])
    output = layer(x, padding_mask=real)
    alone = layer(x[:1, 3:])[0], layer(x[1:])[0]
    torch.testing.assert_close(output[0, 3:], alone[0], rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(output[1], alone[1])
    assert output.isfinite().all()


@in_every_layer_with_a_cache
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_token_with_only_padding_before_it_gets_zeros(kind, dtype):
    layer, x = built(kind).to(dtype), random(3, 7, 5, dtype=dtype).requires_grad_()
    real = torch.arange(7) >= torch.tensor([[0], [3], [7]])
    output = layer(x, padding_mask=real)
    expected = torch.zeros(10, 24, dtype=dtype) + layer.out_proj.bias
    torch.testing.assert_close(output[~real], expected, atol=0, rtol=0)
    output.float().square().sum().backward()
    assert x.grad.isfinite().all()
