"""The course on a GPU; skipped without one."""

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from tests.small_layers import CACHED, random
from utils.attention import attend_with_heads
from utils.delta import DeltaAttention
from utils.latent import LatentAttention
from utils.model import GPT, generate, next_token_loss

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

in_every_layer = pytest.mark.parametrize("kind", CACHED)
MODELS = [
    {"positions": "rotary"},
    {"positions": "none", "num_kv_heads": 2},
    {"attention": LatentAttention, "positions": "rotary"},
    {"attention": DeltaAttention, "gate": True},
]
REAL = torch.arange(128) >= torch.tensor([[0], [20], [128]])  # padded on the left


def built(kind):
    """Return a layer (B, T, 48) -> (B, T, 96) for up to 128 tokens, on the CPU."""
    torch.manual_seed(0)
    return CACHED[kind](48, 96, 128, 0.0)


def gpt(**options):
    torch.manual_seed(0)
    return GPT(97, 64, d_model=32, num_heads=4, num_layers=2, **options).cuda()


def token_ids(*shape):
    generator = torch.Generator().manual_seed(1)
    return torch.randint(97, shape, generator=generator).cuda()


def distance(actual, expected):
    """Return the length of the difference, relative to the length of `expected`."""
    actual, expected = actual.double().cpu(), expected.double().cpu()
    return ((actual - expected).norm() / expected.norm()).item()


@in_every_layer
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(
    "dtype, limit",
    [(torch.float32, 1e-3), (torch.bfloat16, 4e-2), (torch.float16, 1e-2)],
)
@torch.no_grad()
def test_a_layer_computes_what_it_does_on_the_cpu(kind, padded, dtype, limit):
    layer, x = built(kind).double(), random(3, 128, 48)
    expected = layer(x, padding_mask=REAL if padded else None)
    mask = REAL.cuda() if padded else None
    output = layer.to("cuda", dtype)(x.to("cuda", dtype), padding_mask=mask)
    assert distance(output, expected) < limit
    if padded:
        assert torch.equal(output[~mask] - layer.out_proj.bias, 0 * output[~mask])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(
    "backend",
    [SDPBackend.CUDNN_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH],
)
def test_rows_without_any_key_are_zero_in_every_kernel(backend, dtype):
    parts = torch.randn(3, 3, 4, 128, 64, device="cuda", dtype=dtype).requires_grad_()
    try:
        with sdpa_kernel(backend):
            output, _ = attend_with_heads(*parts, REAL.cuda())
    except RuntimeError as error:
        pytest.skip(f"this card lacks the kernel: {error}")
    empty = ~REAL.cuda()[:, None, :, None].expand_as(output)
    assert not output[empty].any()
    output.float().square().sum().backward()
    assert parts.grad.isfinite().all()


@pytest.mark.parametrize("kind", MODELS, ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_model_trains_and_generates_with_its_cache_and_without(kind, dtype):
    model, ids, texts = gpt(**kind), token_ids(3, 9), []
    with torch.autocast("cuda", dtype):
        next_token_loss(model, (ids[:, :-1], ids[:, 1:])).backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())
    for use_cache in (True, False):
        texts.append(generate(model, ids, 20, top_k=1, use_cache=use_cache))
    assert torch.equal(*texts)
