"""What a layer remembers during generation: keys and values of the tokens so far."""

import contextlib

from torch import Tensor

from utils import require


@contextlib.contextmanager
def restored_on_error(caches: list):
    """Leave caches as they were if an error or Ctrl-C stops the block; skip None."""
    caches = [cache for cache in caches if cache is not None]
    before = [vars(cache).copy() for cache in caches]
    try:
        yield
    except BaseException:
        for cache, attributes in zip(caches, before):
            vars(cache).update(attributes)
        raise


class KeyValueCache:
    """Store the keys and values of the tokens so far, for one attention layer.

    capacity: the number of tokens to allocate memory for, once, at the first of them
    key, value: (B, H_kv, capacity, d_k), written in place; None before the first tokens

    Stored tensors are overwritten, so a gradient that would need them raises PyTorch's
    RuntimeError: the cache is for generation.

    >>> import torch
    >>> cache = KeyValueCache(capacity=8)
    >>> key, value = cache.append(torch.zeros(1, 2, 5, 3), torch.zeros(1, 2, 5, 3))
    >>> len(cache), key.shape
    (5, torch.Size([1, 2, 5, 3]))
    """

    def __init__(self, capacity: int):
        require.from_zero(capacity=capacity)
        self.capacity = capacity
        self.key = self.value = None
        self.num_tokens = 0

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

        Raises ValueError if there is no room left, and for another shape or dtype.
        """
        require.floating("key", key)
        require.floating("value", value)
        is_valid = key.dim() == value.dim() == 4 and key.device == value.device
        if self.key is None:
            is_valid = is_valid and key.shape[:3] == value.shape[:3]
        require.that(is_valid, "(B, H_kv, T, d_k) twice", key.shape, value.shape)
        start, end = self.num_tokens, self.num_tokens + key.shape[-2]
        expected = f"at most capacity = {self.capacity} tokens"
        require.that(end <= self.capacity, expected, end)
        pair = self.key, self.value
        if self.key is None:
            pair = [
                new.new_empty(*new.shape[:2], self.capacity, new.shape[-1])
                for new in (key, value)
            ]
        for stored, new in zip(pair, (key, value)):
            expected = stored[:, :, start:end].shape
            kinds = (stored.device, stored.dtype), (new.device, new.dtype)
            if new.shape != expected or kinds[0] != kinds[1]:
                before = f"{kinds[0][1]} {tuple(expected)} on {kinds[0][0]} as before"
                require.refuse(before, new.dtype, new.shape, new.device)
            stored[:, :, start:end] = new
        (self.key, self.value), self.num_tokens = pair, end
        return self.key[:, :, :end], self.value[:, :, :end]
