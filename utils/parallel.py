"""Attention and training over several processes, on `torch.distributed`.

The usual names are data parallelism and context parallelism (ring attention). Each
split gives the outputs and gradients of one process.

Shapes: P processes, T tokens of one process, d_k head width, U hidden units of an MLP.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from utils.attention import replace_minus_infinity, scaled_scores
from utils.validation import (
    NonNegativeInt,
    PositiveInt,
    check_finite,
    check_inputs,
    check_mask,
    raise_unless,
)


@contextlib.contextmanager
def processes() -> Iterator[tuple[int, int]]:
    """Join the group of processes that `torchrun` started, and leave it at the end.

    yields: the rank of this process and the number of processes; 0 and 1 if the program
        wasn't started by torchrun

    The processes communicate through NCCL if each has an NVIDIA GPU of its own, else
    through gloo. A process that still has a `DistributedDataParallel` when the group
    ends may wait forever.
    """
    if "LOCAL_RANK" not in os.environ:
        yield 0, 1
        return
    if has_own_gpu():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    # Without a name PyTorch takes NCCL on any machine that has a GPU.
    dist.init_process_group("nccl" if has_own_gpu() else "gloo")
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def has_own_gpu() -> bool:
    """Return whether this machine has an NVIDIA GPU for each of its processes."""
    return torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))


@check_inputs("query (..., T, d_k); key (..., S, d_k); value (..., S, d_v)")
def partial_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """Attend to some of the keys, so that the results for all keys can be combined.

    query: (..., T, d_k);  key: (..., S, d_k);  value: (..., S, d_v)
    mask: boolean (..., T, S), True = may attend
    returns: accumulators (..., T, d_v), the sums of exponentials times values; maxima
        and denominators (..., T); of float16 inputs in float32. In a row without any
        allowed key the maximum is -inf and the denominator 0

    >>> accumulators, maxima, denominators = partial_attention(*torch.ones(3, 5, 1))
    >>> (accumulators / denominators[:, None]).flatten(), maxima[0], denominators[0]
    (tensor([1., 1., 1., 1., 1.]), tensor(1.), tensor(5.))

    Source: Milakov and Gimelshein 2018, section 3; Dao et al. 2022, section 3.1.
    """
    scores = scaled_scores(query, key)  # (..., T, S)
    if mask is not None:
        check_mask("mask", mask, scores)
        scores = scores.masked_fill(~mask, float("-inf"))
    maxima = scores.new_full(scores.shape[:-1], float("-inf"))  # (..., T)
    if scores.shape[-1]:
        maxima = scores.detach().amax(dim=-1)
    base = replace_minus_infinity(maxima)
    check_finite("maxima below inf, and no NaN", base)
    exps = torch.exp(scores - base[..., None])
    return exps @ value.to(exps.dtype), maxima, exps.sum(dim=-1)


@check_inputs(
    "accumulators (..., T, d_v); maxima (..., T); denominators (..., T)",
    same_leading=True,
)
def combine_partial_attention(
    accumulators: Tensor, maxima: Tensor, denominators: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Combine parts over different keys into one part, so that more can follow.

    accumulators: (P, ..., T, d_v);  maxima, denominators: (P, ..., T)
    returns: the same three for all keys, (..., T, d_v) and twice (..., T); the
        accumulators divided by the denominators are the attention

    >>> parts = torch.tensor([[[2.0]], [[6.0]]]), torch.zeros(2, 1), torch.ones(2, 1)
    >>> combine_partial_attention(*parts)
    (tensor([[8.]]), tensor([0.]), tensor([2.]))

    Source: Milakov and Gimelshein 2018, section 3.1; Liu, Zaharia and Abbeel 2023,
    section 3.
    """
    largest = maxima.amax(dim=0)
    base = replace_minus_infinity(largest)
    check_finite("maxima below inf, and no NaN", base)
    factors = torch.exp(maxima - base)  # (P, ..., T)
    accumulator = (factors[..., None] * accumulators).sum(0)
    denominator = (factors * denominators).sum(0)
    for total in (accumulator, denominator):
        check_finite(f"finite sums in {total.dtype}", total)
    return accumulator, largest, denominator


def merge_parts(
    first: tuple[Tensor, Tensor, Tensor], second: tuple[Tensor, Tensor, Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """Combine two parts into one.

    first, second: as `partial_attention` returns them
    returns: the same three for the keys of both

    >>> part = torch.tensor([[6.0]]), torch.zeros(1), torch.ones(1)
    >>> merge_parts(part, part)
    (tensor([[12.]]), tensor([0.]), tensor([2.]))
    """
    return combine_partial_attention(*map(torch.stack, zip(first, second)))


@check_inputs("W_1 (U, D); x (..., D); b_1 (U); W_2 (D, U); b_2 (D)")
def mlp_part(
    x: Tensor,
    W_1: Tensor,
    b_1: Tensor,
    W_2: Tensor,
    b_2: Tensor,
    rank: NonNegativeInt,
    count: PositiveInt,
) -> Tensor:
    """Return what one of several processes adds to the output of an MLP.

    x: (..., T, D);  W_1: (U, D);  b_1: (U,);  W_2: (D, U);  b_2: (D,)
    rank, count: the process, which takes the rank-th of `count` parts of the hidden
        units. `count` divides U, and process 0 adds `b_2`
    returns: (..., T, D); the parts of all processes sum to the output

    >>> one = torch.ones(1, 1)
    >>> W_1, b_1, W_2 = torch.ones(2, 1), torch.zeros(2), torch.ones(1, 2)
    >>> [mlp_part(one, W_1, b_1, W_2, torch.ones(1), rank, 2) for rank in (0, 1)]
    [tensor([[1.8413]]), tensor([[0.8413]])]

    Source: Shoeybi et al. 2019, *Megatron-LM*, section 3.
    """
    U = len(W_1)
    is_valid = rank < count and U % count == 0
    expected = f"a count that divides U = {U} and a rank below it"
    raise_unless(is_valid, expected, count, rank)
    W_1, b_1 = W_1.chunk(count)[rank], b_1.chunk(count)[rank]
    part = F.gelu(x @ W_1.mT + b_1) @ W_2.chunk(count, dim=1)[rank].mT
    return part + b_2 if rank == 0 else part


@check_inputs()
def local_positions(num_tokens: NonNegativeInt, striped: bool = False) -> Tensor:
    """Return the positions of this process's tokens in a text of `num_tokens`.

    striped: each process has every P-th token instead of neighbours, so that a causal
        mask leaves about the same work for all
    returns: integers (num_tokens / P,)

    Source: stripes as in Brandon et al. 2023, section 3.
    """
    rank, count = _rank_and_count()
    expected = f"a number of tokens that {count} processes can share equally"
    raise_unless(num_tokens % count == 0, expected, num_tokens)
    positions = torch.arange(num_tokens)
    return positions[rank::count] if striped else positions.chunk(count)[rank]


def _rank_and_count():
    is_one = dist.is_available() and dist.is_initialized()
    expected = "one of several processes, as `in_processes` starts them"
    raise_unless(is_one, expected, "a process alone")
    return dist.get_rank(), dist.get_world_size()


@check_inputs(
    "query (..., T, d_k); key (..., T, d_k); value (..., T, d_k); positions: any (T)",
    same_leading=True,
)
def ring_attention(
    query: Tensor, key: Tensor, value: Tensor, positions: Tensor | None = None
) -> Tensor:
    """Attend to the tokens of all processes, while keys and values go round a ring.

    In each of P turns a process attends to the keys that it holds, merges the part into
    one running result, and sends the keys and values to the next process.

    query, key, value: (..., T, d_k), those of this process
    positions: integers (T,), the positions of its tokens in the whole text, for a
        causal mask; None for no mask
    returns: (..., T, d_k), with gradients for the keys and values of every process

    Source: Liu, Zaharia and Abbeel 2023, section 3.
    """
    (_, num_turns), result = _rank_and_count(), None
    chunk, chunk_positions = torch.stack((key, value)), positions
    for turn in range(num_turns):
        mask = None
        if positions is not None:
            mask = chunk_positions <= positions[:, None]  # (T, S)
        part = partial_attention(query, *chunk, mask)
        result = part if result is None else merge_parts(result, part)
        if turn < num_turns - 1:
            chunk = _SendToNext.apply(chunk)
            if positions is not None:
                chunk_positions = _exchange(chunk_positions, 1)
    accumulator, _, denominator = result  # not 0, because a token sees itself
    return (accumulator / denominator[..., None]).to(value.dtype)


class _SendToNext(torch.autograd.Function):
    """Send a tensor to the next process; its gradient comes back the same way."""

    @staticmethod
    def forward(ctx, x):
        return _exchange(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return _exchange(grad, -1)


def _exchange(x, step):
    """Send x to the process `step` ranks ahead; return what comes from behind."""
    rank, count = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(x)
    sends = dist.P2POp(dist.isend, x.contiguous(), (rank + step) % count)
    receives = dist.P2POp(dist.irecv, received, (rank - step) % count)
    for work in dist.batch_isend_irecv([sends, receives]):
        work.wait()
    return received


def split_batch_over_processes(
    model: nn.Module, compute_loss: Callable[[nn.Module, Any], Tensor]
) -> Callable[[nn.Module, Any], Tensor]:
    """Let each process compute the loss of its share of a batch.

    model: every process has the same weights, for example from the same seed
    compute_loss: function (model, batch) -> the mean loss of the sentences of a batch
    returns: a function with the same arguments, for this model only. Its value is the
        loss of the whole batch, and its gradient is averaged over the processes during
        `backward`

    Source: Li et al. 2020, section 3.
    """
    _rank_and_count()  # raises
    parallel_model = DistributedDataParallel(model)

    def compute(passed_model, batch):
        is_shared = passed_model is model
        received = type(passed_model).__name__
        raise_unless(is_shared, "the model that is shared", received)
        rank, count = _rank_and_count()
        expected = f"a batch that {count} processes can share equally"
        raise_unless(len(batch[0]) % count == 0, expected, len(batch[0]))
        local_batch = [part.chunk(count)[rank] for part in batch]
        loss = compute_loss(parallel_model, local_batch)
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        # The gradient has to come from `loss`, but the value has to be the mean over
        # all processes. The parentheses hold their difference, without a gradient.
        return loss + (mean / count - loss.detach())

    return compute
