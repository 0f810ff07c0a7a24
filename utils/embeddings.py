"""Vectors from token ids, tokens from images, and the order of words.

Shapes: B batch, T tokens, D model width, V vocabulary, N patches, C channels.
"""

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from utils.validation import (
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    check_broadcastable,
    check_context_length,
    check_even,
    check_finite,
    check_inputs,
    check_range,
    check_shapes,
    check_token_ids,
    raise_unless,
)


@check_inputs("table: any (V, D)")
def embed(ids: Tensor, table: Tensor) -> Tensor:
    """Look up embeddings: what the product of one-hot rows with the table gives.

    ids: integers (...) from 0 to V - 1
    table: (V, D)
    returns: (..., D), equal to `table[ids]`, also next to rows with infinite entries

    >>> embed(torch.tensor([2, 0]), torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    tensor([[5., 6.],
            [1., 2.]])
    """
    check_token_ids(ids, len(table))
    return F.embedding(ids, table)


@check_inputs()
def sinusoidal_positions(num_positions: PositiveInt, d_model: int) -> Tensor:
    """Give each position a fixed vector of sines and cosines.

    P[t, 2i] = sin(t / 10000^(2i/D)),  P[t, 2i+1] = cos(t / 10000^(2i/D))

    d_model: D, even and positive
    returns: (T, D), positions from 0

    >>> sinusoidal_positions(2, 4)
    tensor([[0.0000, 1.0000, 0.0000, 1.0000],
            [0.8415, 0.5403, 0.0100, 0.9999]])

    Source: Vaswani et al. 2017, section 3.5.
    """
    check_even("d_model", d_model)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)  # 2i
    positions = torch.arange(num_positions)
    angles = positions[:, None] / 10000 ** (even / d_model)  # (T, D / 2)
    table = torch.stack((angles.sin(), angles.cos()), dim=-1)  # (T, D / 2, 2)
    return table.flatten(-2).to(torch.get_default_dtype())  # (T, D)


@check_inputs("images: any (B, C, height, width)")
def patchify(images: Tensor, patch_size: PositiveInt) -> Tensor:
    """Cut images into square patches, one token each.

    images: (B, C, height, width)
    patch_size: the side p of a patch, in pixels, which divides both
    returns: (B, N, C * p * p) with N = height/p * width/p. Patches are in row order;
        each lists the pixels of channel 0, row by row, then those of channel 1 …

    >>> patchify(torch.arange(8).view(1, 1, 2, 4), 2)
    tensor([[[0, 1, 4, 5],
             [2, 3, 6, 7]]])

    Source: Dosovitskiy et al. 2021, section 3.1.
    """
    B, C, height, width = images.shape
    p = patch_size
    is_whole = height % p == width % p == 0
    raise_unless(is_whole, f"sides that {p} divides", height, width)
    x = images.reshape(B, C, height // p, p, width // p, p)
    x = x.permute(0, 2, 4, 1, 3, 5)  # (B, rows, columns, C, p, p)
    return x.reshape(B, (height // p) * (width // p), C * p * p)


class TokenAndPositionEmbedding(nn.Module):
    """Add a learned vector for the token and a learned vector for its position.

    token_ids: (B, T) with T up to `context_length`, from 0 to V - 1
    start: position of the first token, if earlier ones are in a cache
    returns: (B, T, D)

    With `context_length=None` there is no table of positions and no limit.

    >>> TokenAndPositionEmbedding(50257, 4, 8)(torch.tensor([[11, 22]])).shape
    torch.Size([1, 2, 8])

    Source: Radford et al. 2018, section 3.1.
    """

    @check_inputs()
    def __init__(
        self,
        vocab_size: PositiveInt,
        context_length: NonNegativeInt | None,
        d_model: PositiveInt,
    ):
        super().__init__()
        self.token_embedding = nn.Embedding(vocab_size, d_model)
        self.position_embedding = None
        if context_length is not None:
            self.position_embedding = nn.Embedding(context_length, d_model)

    @check_inputs("token_ids: any (..., T)")
    def forward(self, token_ids: Tensor, start: NonNegativeInt = 0) -> Tensor:
        num_embeddings = self.token_embedding.num_embeddings
        check_token_ids(token_ids, num_embeddings)
        if self.position_embedding is None:
            return self.token_embedding(token_ids)
        end = start + token_ids.shape[-1]
        check_context_length(end, self.position_embedding.num_embeddings)
        positions = torch.arange(start, end, device=token_ids.device)
        return self.token_embedding(token_ids) + self.position_embedding(positions)


@check_inputs("x (..., T, d_k); positions: any (...)")
def apply_rope(x: Tensor, positions: Tensor, base: float = 10000.0) -> Tensor:
    """Rotate pairs of neighbouring features by angles that grow with the position.

    Pair (2p, 2p+1) at position t rotates by t * base^(-2p/d_k), counter-clockwise, so
    that the dot product of two rotated vectors depends only on their distance.

    x: (..., T, d_k), floating point, with an even d_k
    positions: (T,), or anything that broadcasts to (..., T), such as (B, 1, T)
    returns: (..., T, d_k)

    >>> apply_rope(torch.tensor([[1.0, 0.0]]), torch.tensor([torch.pi / 2])).round()
    tensor([[-0., 1.]])

    Source: Su et al. 2021, section 3.2. Many models pair feature i with i + d_k/2.
    """
    check_broadcastable("positions", positions, x.shape[:-1])
    check_even("width of x", x.shape[-1])
    return rotate_pairs(x, *rotary_tables(positions, x.shape[-1], base))


@check_inputs()
def rotary_tables(
    positions: Tensor,
    width: int,
    base: PositiveFloat = 10000.0,
    rescale: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """Compute the cosines and sines with which `apply_rope` rotates each pair.

    positions: (..., T)
    width: d_k, even and positive
    rescale: function that changes the frequencies (d_k / 2,), in radians per token
    returns: cosines and sines, (..., T, d_k / 2) each, in float32 or wider
    """
    check_even("width", width)
    dtype = torch.promote_types(torch.get_default_dtype(), torch.float32)
    # In float32 the positions 2^24 and 2^24 + 1 would be the same.
    even = torch.arange(0, width, 2, dtype=torch.float64, device=positions.device)  # 2p
    periods = base ** (even / width)  # (d_k / 2,), in tokens per radian
    if rescale is not None:
        speeds = rescale(1 / periods)
        check_shapes("frequencies (half_width)", speeds, half_width=len(even))
        check_finite("finite frequencies", speeds)
        periods = 1 / speeds
    angles = positions[..., None].double() / periods  # (..., T, d_k / 2)
    check_range("angles", angles, -(2**53), 2**53)  # larger ones have no fraction
    return angles.cos().to(dtype), angles.sin().to(dtype)


@check_inputs("x (..., d_k); cos: any (..., half); sin: any (..., half)")
def rotate_pairs(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotate each pair of neighbouring features, counter-clockwise.

    x: (..., T, d_k)
    cos, sin: (T, d_k / 2), or (..., T, d_k / 2) with axes that broadcast
    returns: (..., T, d_k)
    """
    is_valid = x.shape[-1] == 2 * cos.shape[-1]
    raise_unless(is_valid, "two features for each cosine", x.shape, cos.shape)
    cos, sin = cos.to(x.dtype), sin.to(x.dtype)
    a, b = x[..., 0::2], x[..., 1::2]
    rotated = torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1)
    return rotated.flatten(-2)  # (..., T, d_k)


class ComputedBuffer(nn.Module):
    """A module with a buffer that isn't saved, because it is computed from its sizes.

    `compute_buffer` returns its name and its value. It is called again when the module
    leaves the device `meta`, where tensors have shapes but no entries.
    """

    def register_computed(self):
        """Register the buffer."""
        self._computed, value = self.compute_buffer()
        self.register_buffer(self._computed, value, persistent=False)

    def _apply(self, fn, recurse=True):
        was_meta = getattr(self, self._computed).is_meta
        super()._apply(fn, recurse)
        buffer = getattr(self, self._computed)
        if was_meta and not buffer.is_meta:
            with torch.device(buffer.device):
                self.register_computed()
        return self


class Rotary(ComputedBuffer):
    """Rotate the queries or keys of a text by their positions, as `apply_rope` does.

    num_positions: how many positions the tables of cosines and sines have
    width, base, rescale: as `rotary_tables` takes them
    x: (..., T, d_k);  start: the position of its first token
    returns: (..., T, d_k)
    """

    @check_inputs()
    def __init__(
        self,
        num_positions: PositiveInt,
        width: int,
        base: float = 10000.0,
        rescale: Callable[[Tensor], Tensor] | None = None,
    ):
        super().__init__()
        self.num_positions, self.options = num_positions, (width, base, rescale)
        self.register_computed()

    def compute_buffer(self):
        tables = rotary_tables(torch.arange(self.num_positions), *self.options)
        return "tables", torch.stack(tables)

    @check_inputs("x (..., T, d_k)")
    def forward(self, x: Tensor, start: NonNegativeInt) -> Tensor:
        end = start + x.shape[-2]
        check_context_length(end, self.num_positions, "num_positions")
        return rotate_pairs(x, *self.tables[:, start:end])


@check_inputs()
def alibi_bias(num_heads: PositiveInt, num_tokens: NonNegativeInt) -> Tensor:
    """Give each head a penalty that grows with the distance to an earlier token.

    bias[h, i, j] = -2^(-8 (h + 1) / H) * (i - j) for j <= i; 0 above the diagonal,
    which the causal mask hides

    num_heads: H, 1 or more
    returns: (H, T, T), to be added to the scores

    >>> alibi_bias(2, 3)[0]
    tensor([[ 0.0000,  0.0000,  0.0000],
            [-0.0625,  0.0000,  0.0000],
            [-0.1250, -0.0625,  0.0000]])

    Source: Press et al. 2022, section 3. For a number of heads that is not a power
    of two it interpolates the slopes; here the formula holds for every H.
    """
    slopes = 2.0 ** (-8 * torch.arange(1, num_heads + 1) / num_heads)  # (H,)
    positions = torch.arange(num_tokens)
    offset = (positions - positions[:, None]).clamp(max=0)  # (T, T), -(i - j)
    return slopes[:, None, None] * offset
