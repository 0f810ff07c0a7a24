"""Attention and training over processes, on `torch.distributed`.

    torchrun --nproc-per-node 2 -m utils.parallel batch
    torchrun --nproc-per-node 2 -m utils.parallel heads
    torchrun --nproc-per-node 2 -m utils.parallel tokens
    torchrun --nproc-per-node 2 -m utils.parallel striped
    torchrun --nproc-per-node 2 -m utils.parallel bidirectional
    torchrun --nproc-per-node 2 -m utils.parallel weights

The field calls them data parallelism, tensor parallelism, context parallelism (three
times, by ring attention) and fully sharded data parallelism.

Each command computes one thing twice, alone and split over the processes. It raises an
error where outputs or gradients differ, else it prints what a process holds, and what
it sends. Of the three that split tokens, `striped` gives a process every P-th one, and
`bidirectional` has no causal mask. They compute on GPUs where each process has one,
else on the CPU. The same commands run on several machines; there `torchrun` wants to
know where they meet.

Shapes: P processes, B batch, H heads, T tokens of a process, K head width.
"""

import argparse
import contextlib
import copy
import datetime
import functools
import os
import sys

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.functional import scaled_dot_product_attention
from torch.nn.parallel import DistributedDataParallel
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from utils.attention import MultiHeadAttention
from utils.model import GPT, next_token_loss

PATIENCE = datetime.timedelta(seconds=30)  # for a process that does not answer


@contextlib.contextmanager
def processes(timeout=None):
    """Join the processes that `torchrun` started; leave them at the end, come what may.

    timeout: how long to wait for another process, a `timedelta`
    yields: the number of this process and how many there are; 0 and 1 without torchrun

    Where each has an NVIDIA GPU of its own they talk through NCCL, else through gloo.
    Make a `DistributedDataParallel` in a function that returns before they part: a
    process that still holds one may wait for ever.
    """
    if "LOCAL_RANK" not in os.environ:
        yield 0, 1
        return
    if has_own_gpu():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    backend = "nccl" if has_own_gpu() else "gloo"
    dist.init_process_group(backend, timeout=timeout)
    try:
        yield dist.get_rank(), dist.get_world_size()
    finally:
        dist.destroy_process_group()


def has_own_gpu():
    """Return whether there is an NVIDIA GPU for each process on this machine."""
    return torch.cuda.device_count() >= int(os.environ.get("LOCAL_WORLD_SIZE", 1))


def partial_attention(query, key, value, mask=None):
    """Attend to some of the keys, and keep what the others need to join in.

    query: (..., T, d_k);  key: (..., S, d_k);  value: (..., S, d_v)
    mask: boolean (..., T, S), True = may attend
    returns: unnormalised outputs (..., T, d_v), maxima and sums (..., T)

    Where a row may attend to nothing its maximum is -inf and its sum 0.

    >>> outputs, maxima, sums = partial_attention(*torch.ones(3, 5, 1))
    >>> (outputs / sums[:, None]).flatten(), maxima[0], sums[0]
    (tensor([1., 1., 1., 1., 1.]), tensor(1.), tensor(5.))

    Source: Milakov and Gimelshein 2018, section 3; Dao et al. 2022, section 3.1.
    """
    scores = query @ key.transpose(-2, -1) / query.shape[-1] ** 0.5  # (..., T, S)
    if mask is not None:
        scores = scores.masked_fill(~mask, float("-inf"))
    maxima = scores.detach().amax(dim=-1)  # (..., T)
    weights = torch.exp(scores - _finite(maxima)[..., None])
    return weights @ value, maxima, weights.sum(dim=-1)


def combine_partial_attention(outputs, maxima, sums):
    """Join what was computed over different keys, as if it had been done at once.

    outputs: (P, ..., T, d_v), unnormalised;  maxima, sums: (P, ..., T)
    returns: (..., T, d_v); zero where there was nothing to attend to

    >>> parts = torch.tensor([[[2.0]], [[6.0]]]), torch.zeros(2, 1), torch.ones(2, 1)
    >>> combine_partial_attention(*parts)
    tensor([[4.]])

    Source: Liu, Zaharia and Abbeel 2023, section 3.
    """
    factors = torch.exp(maxima - _finite(maxima.amax(dim=0)))  # (P, ..., T)
    total = (factors * sums).sum(dim=0)
    output = (factors[..., None] * outputs).sum(dim=0)  # (..., T, d_v)
    return output / total.masked_fill(total == 0, 1.0)[..., None]


def merge_parts(first, second):
    """Join two parts into one that is not divided yet, so that others can follow.

    first, second: outputs (..., T, d_v), maxima and sums (..., T), as they come from
        `partial_attention`
    returns: the same three for the keys of both

    >>> part = torch.tensor([[6.0]]), torch.zeros(1), torch.ones(1)
    >>> merge_parts(part, part)
    (tensor([[12.]]), tensor([0.]), tensor([2.]))

    Source: Milakov and Gimelshein 2018, section 3.1.
    """
    (outputs_1, maxima_1, sums_1), (outputs_2, maxima_2, sums_2) = first, second
    maxima = torch.maximum(maxima_1, maxima_2)
    factor_1 = torch.exp(maxima_1 - _finite(maxima))  # (..., T), at most 1
    factor_2 = torch.exp(maxima_2 - _finite(maxima))
    outputs = factor_1[..., None] * outputs_1 + factor_2[..., None] * outputs_2
    return outputs, maxima, factor_1 * sums_1 + factor_2 * sums_2


def own_positions(num_tokens, striped=False):
    """Return where the tokens of this process stand in a text of `num_tokens`.

    They stand side by side, or `striped`: each process has every P-th token, so that a
    causal mask leaves all of them about equally much to do.

    Raises ValueError where the processes cannot have equally many.

    Source: stripes as in Brandon et al. 2023, section 3.
    """
    rank, count = dist.get_rank(), dist.get_world_size()
    if num_tokens % count:
        raise ValueError(
            f"expected a number of tokens that {count} processes can share equally, "
            f"got {num_tokens}"
        )
    everything = torch.arange(num_tokens)
    return everything[rank::count] if striped else everything.chunk(count)[rank]


def _finite(maxima):
    # exp(-inf - (-inf)) would be NaN: a row without keys counts from 0.
    return maxima.masked_fill(maxima == float("-inf"), 0.0)


def ring_attention(query, key, value, positions=None):
    """Attend to the tokens of all processes, while keys and values go round.

    Each process has T tokens of each sentence. In P turns it attends to what it holds,
    merges that into one running result, and passes the keys and values on to the next
    process. Under `no_grad` it holds those of two processes at most, one of them being
    received, and one result; else autograd keeps what came by for `backward`.

    query, key, value: (..., T, K), those of this process
    positions: integers (T,), where its tokens stand in the whole text; then a token
        attends to itself and to what stands before it, without them to everything
    returns: (..., T, K), and gradients for the keys and values of every process

    Source: Liu, Zaharia and Abbeel 2023, section 3.
    """
    count, seen = dist.get_world_size(), None
    theirs, held = positions, torch.stack((key, value))
    for turn in range(count):
        mask = None if positions is None else theirs <= positions[:, None]  # (T, S)
        part = partial_attention(query, *held, mask)
        seen = part if seen is None else merge_parts(seen, part)
        if turn < count - 1:
            held = _PassOn.apply(held)
            theirs = None if theirs is None else _exchange(theirs, 1)
    return combine_partial_attention(*(x[None] for x in seen))  # which divides


class _PassOn(torch.autograd.Function):
    """Give a tensor to the next process; its gradient comes back the same way."""

    @staticmethod
    def forward(ctx, x):
        return _exchange(x, 1)

    @staticmethod
    def backward(ctx, grad):
        return _exchange(grad, -1)


def _exchange(x, step):
    rank, count = dist.get_rank(), dist.get_world_size()
    received = torch.empty_like(x)
    sends = dist.P2POp(dist.isend, x.contiguous(), (rank + step) % count)
    receives = dist.P2POp(dist.irecv, received, (rank - step) % count)
    for work in dist.batch_isend_irecv([sends, receives]):
        work.wait()
    return received


def split_heads_over_processes(layer):
    """Give each process some of the heads of a `MultiHeadAttention`, in place.

    It keeps the rows of `W_query`, `W_key` and `W_value` that make its heads, and the
    columns of `out_proj` that read them. What the processes write is added up.

    Raises ValueError where the processes cannot have equally many heads, and for a
    layer with ALiBi, whose heads differ by their number in the whole layer.

    Source: Shoeybi et al. 2019, section 3.
    """
    count = dist.get_world_size()
    if layer.num_kv_heads % count:
        raise ValueError(
            f"expected a number of heads that {count} processes can share equally, "
            f"got {layer.num_kv_heads}"
        )
    if layer.alibi:
        raise ValueError("expected a layer without ALiBi, got alibi=True")
    rows = {name: ColwiseParallel() for name in ("W_query", "W_key", "W_value")}
    plan = {**rows, "out_proj": RowwiseParallel()}
    kind = next(layer.parameters()).device.type
    parallelize_module(layer, init_device_mesh(kind, (count,)), plan)
    layer.num_heads //= count
    layer.num_kv_heads //= count


def split_weights_over_processes(model):
    """Give each process a share of every weight of a `GPT`, in place.

    The weights of a block are gathered before it computes, and dropped again behind it.
    Where gathering and computing overlap, those of the next block are whole as well. Of
    a gradient each process gets its share, averaged over them all.

    Source: Rajbhandari et al. 2020, section 5; Zhao et al. 2023, section 3.
    """
    kind = next(model.parameters()).device.type
    mesh = init_device_mesh(kind, (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)


def split_batch_over_processes(model, compute_loss):
    """Let each process compute the loss of its share of a batch.

    model: every process has the same weights, as after the same seed
    compute_loss: function (model, batch) -> the mean over the sentences of a batch
    returns: such a function, whose value is that of the whole batch and whose gradient
        is averaged over the processes while it is computed

    Raises ValueError for a batch that the processes cannot share equally.

    Source: Li et al. 2020, section 3.
    """
    shared = DistributedDataParallel(model)

    def compute(model, batch):
        loss = compute_loss(shared, _own_part(batch))
        mean = loss.detach().clone()
        dist.all_reduce(mean)
        # `loss` must stay in the sum, because it leads to the gradient, but its value
        # is that of this share alone. The bracket holds what is missing to the mean of
        # all processes: a number without a gradient. So the value becomes loss + mean -
        # loss, which is the mean, and the gradient stays that of `loss`.
        return loss + (mean / dist.get_world_size() - loss.detach())

    return compute


def _own_part(batch):
    rank, count = dist.get_rank(), dist.get_world_size()
    if len(batch[0]) % count:
        raise ValueError(
            f"expected a batch that {count} processes can share equally, "
            f"got {len(batch[0])}"
        )
    return [part.chunk(count)[rank] for part in batch]


class Traffic(TorchDispatchMode):
    """Count what this process sends while the context is open.

    sent: name of the operation -> a list of bytes, one number for each call

    What all processes do together is counted as on a ring. There each of them sends
    every share but one of a tensor, and for an all-reduce twice.

    Source: Patarasuk and Yuan 2009, section 3.
    """

    GIVEN = {"_reduce_scatter_base_": 1, "_allgather_base_": 1}  # else argument 0

    def __init__(self):
        super().__init__()
        self.sent = {}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function.namespace in ("c10d", "_c10d_functional"):
            self._count(function._schema.name.split("::")[1], args)
        return function(*args, **(kwargs or {}))

    def _count(self, name, args):
        if name.startswith(("recv", "wait", "_wrap", "barrier")):
            return
        given = tree_leaves(args[self.GIVEN.get(name, 0)])
        size = sum(num_bytes(x) for x in given if isinstance(x, torch.Tensor))
        name = name.strip("_").removesuffix("_base")
        self.sent.setdefault(name, []).append(_sent(name, size))


def _sent(name, size):
    # Into a gather goes a share, and into the other two a whole tensor.
    others = dist.get_world_size() - 1
    if "gather" in name:
        return size * others
    if "reduce" in name:
        return size * others * (1 if "scatter" in name else 2) // (others + 1)
    return size


def num_bytes(x):
    """Return the bytes of a tensor, of a split one those that this process holds."""
    x = x.to_local() if isinstance(x, DTensor) else x
    return x.numel() * x.element_size()


# What the command shows: each function returns lines, name and value.


def compare_batch():
    """Train on a batch alone, and with a share of the sentences for each process."""
    alone, shared, batch = *_twins(), _batch()
    next_token_loss(alone, batch).backward()
    shared, mine = DistributedDataParallel(shared), _own_part(batch)
    with Traffic() as traffic:
        next_token_loss(shared, mine).backward()
    _expect_equal(_gradients(shared), _gradients(alone))
    return {
        "sentences": f"{len(mine[0])} of {len(batch[0])}",
        "bytes of weights": _share(shared, alone),
        **_said(traffic),
    }


def compare_heads():
    """Attend with all heads alone, and with some of the heads in each process."""
    alone = MultiHeadAttention(64, 64, 32, 0.0, num_heads=8)
    shared, x = copy.deepcopy(alone), torch.randn(2, 32, 64, requires_grad=True)
    split_heads_over_processes(shared)
    mine = x.detach().requires_grad_()
    outputs = alone(x)
    with Traffic() as forward:
        split = shared(mine)
    outputs.square().sum().backward()
    with Traffic() as backward:
        split.square().sum().backward()
    _expect_equal([split, mine.grad], [outputs, x.grad])
    _expect_equal(_gradients(shared), _gradients(alone))
    return {
        "heads": f"{shared.num_heads} of {alone.num_heads}",
        "bytes of weights": _share(shared, alone),
        **_said(forward, "forward: "),
        **_said(backward, "backward: "),
    }


def compare_tokens(causal=True, striped=False):
    """Attend to a text alone, and with some of its tokens in each process."""
    num_tokens = 64
    whole = [torch.randn(2, 8, num_tokens, 16, requires_grad=True) for _ in range(3)]
    outputs = scaled_dot_product_attention(*whole, is_causal=causal)
    positions = own_positions(num_tokens, striped)
    mine = [x.detach()[..., positions, :].requires_grad_() for x in whole]
    with Traffic() as traffic:
        split = ring_attention(*mine, positions if causal else None)
        split.square().sum().backward()
    outputs.square().sum().backward()
    _expect_equal([split], [outputs[..., positions, :]])
    _expect_equal([x.grad for x in mine], [x.grad[..., positions, :] for x in whole])
    everything = torch.ones(len(positions), num_tokens, dtype=torch.bool)
    seen = torch.arange(num_tokens) <= positions[:, None] if causal else everything
    return {
        "tokens": f"{len(positions)} of {num_tokens}",
        "scores that count": f"{seen.sum()} of {seen.numel()}",
        "bytes of keys and values": f"{sum(map(num_bytes, mine[1:])):,}",
        **_said(traffic),
    }


def compare_weights():
    """Train on a batch alone, and with a share of every weight in each process."""
    alone, shared, batch = *_twins(), _batch()
    next_token_loss(alone, batch).backward()
    split_weights_over_processes(shared)
    before = _share(shared, alone)
    during = []
    for block in shared.blocks:  # its weights are whole while its parts compute
        block.norm2.register_forward_hook(lambda *_: during.append(_held(shared)))
    with Traffic() as traffic:
        next_token_loss(shared, _own_part(batch)).backward()
    _expect_equal(_gradients(shared), _gradients(alone))
    return {
        "bytes of weights": before,
        "bytes of weights while computing": f"{max(during):,}",
        "bytes of weights afterwards": f"{_held(shared):,}",
        **_said(traffic),
    }


def _twins():
    model = GPT(512, 32, d_model=64, num_heads=4, num_layers=2)
    return model, copy.deepcopy(model)


def _batch():
    tokens = torch.randint(512, (8, 33))
    return tokens[:, :-1], tokens[:, 1:]


def _gradients(model):
    gradients = [weight.grad for weight in model.parameters()]
    return [g.full_tensor() if isinstance(g, DTensor) else g for g in gradients]


def _expect_equal(split, whole):
    allowed = 1e-10 if whole[0].dtype == torch.float64 else 1e-5
    for ours, theirs in zip(split, whole):
        torch.testing.assert_close(ours, theirs, rtol=allowed, atol=allowed)


def _held(model):
    return sum(map(num_bytes, model.parameters()))


def _share(shared, alone):
    return f"{_held(shared):,} of {_held(alone):,}"


def _said(traffic, when=""):
    return {
        f"{when}bytes sent by {name}": f"{sum(sizes):,}, calls: {len(sizes)}"
        for name, sizes in traffic.sent.items()
    }


SPLITS = {
    "batch": compare_batch,
    "heads": compare_heads,
    "tokens": compare_tokens,
    "striped": functools.partial(compare_tokens, striped=True),
    "bidirectional": functools.partial(compare_tokens, causal=False),
    "weights": compare_weights,
}


def main():
    """Read the command line, compare, and let the first process print."""
    parser = argparse.ArgumentParser(prog="torchrun ... -m utils.parallel")
    parser.add_argument("what", choices=SPLITS, nargs="+")
    parser.add_argument("--double", action="store_true", help="compute in float64")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64 if options.double else torch.float32)
    with processes(PATIENCE) as (rank, count):
        if count < 2:
            parser.error("start two processes or more: torchrun --nproc-per-node 2 ...")
        if has_own_gpu():
            torch.set_default_device("cuda")  # the one that `processes` chose
        for what in options.what:
            torch.manual_seed(0)  # the same weights and inputs in every process
            lines = SPLITS[what]()
            if rank == 0:
                print(f"{what} over {count} processes, equal to one process")
                print("\n".join(f"{name:36} {value}" for name, value in lines.items()))


if __name__ == "__main__":
    sys.exit(main())
