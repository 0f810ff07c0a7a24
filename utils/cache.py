"""What a layer remembers during generation: keys and values of the tokens so far."""

import contextlib

from torch import Tensor

from utils.validation import (
    NonNegativeInt,
    check_inputs,
    check_shapes,
    raise_unless,
)


@contextlib.contextmanager
def restore_on_error(caches: list):
    """Leave caches as they were if an error or Ctrl-C stops the block; skip None."""
    caches = [cache for cache in caches if cache is not None]
    snapshots = [vars(cache).copy() for cache in caches]
    try:
        yield
    except BaseException:
        for cache, attributes in zip(caches, snapshots):
            vars(cache).update(attributes)
        raise


class KeyValueCache:
    """Store the keys and values of the tokens so far, for one attention layer.

    capacity: the number of tokens to allocate memory for, once, at the first of them
    key, value: (B, H_kv, capacity, d_k), written in place; None before the first tokens

    Stored tensors are overwritten, so a gradient that would need them raises PyTorch's
    RuntimeError: the cache is for generation. `copy.copy` returns a cache that shares
    them; to continue one text in two ways, take `copy.deepcopy`.
    """

    @check_inputs()
    def __init__(self, capacity: NonNegativeInt):
        self.capacity = capacity
        self.key = self.value = None
        self.num_tokens = 0
        self._known = {}  # sizes, dtype and device of the first keys and values

    def __len__(self):
        return self.num_tokens

    @property
    def nbytes(self) -> int:
        """The number of bytes allocated; 0 before the first tokens."""
        return 0 if self.key is None else self.key.nbytes + self.value.nbytes

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens; return those of all tokens so far.

        key, value: (B, H_kv, T, d_k)
        returns: both (B, H_kv, S, d_k), the new ones last
        """
        expected = "key (B, H_kv, T, d_k); value (B, H_kv, T, d_v)"
        known = check_shapes(expected, key, value, **self._known)
        start, end = self.num_tokens, self.num_tokens + known.pop("T")
        expected = f"at most capacity = {self.capacity} tokens"
        raise_unless(end <= self.capacity, expected, end)
        if self.key is None:
            self.key, self.value = (
                x.new_empty(*x.shape[:2], self.capacity, x.shape[-1])
                for x in (key, value)
            )
        self.key[:, :, start:end], self.value[:, :, start:end] = key, value
        self._known, self.num_tokens = known, end
        return self.key[:, :, :end], self.value[:, :, :end]
