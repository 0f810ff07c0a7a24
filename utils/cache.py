"""What a layer remembers during generation: keys and values of the tokens so far."""

import torch
from torch import Tensor


class KeyValueCache:
    """Store the keys and values of the tokens so far, for one attention layer.

    capacity: the number of tokens to allocate memory for, once, at the first of them
    window: the sliding window of the layer, if it has one. Then two windows are
        allocated: when they are full, the newest window moves to the front and the
        older tokens are dropped.
    key, value: (B, H_kv, allocated, K), written in place; None before the first tokens

    `len` counts all tokens so far, including dropped ones. Stored tensors are
    overwritten, so a gradient that would need them raises PyTorch's RuntimeError: the
    cache is for generation.

    >>> cache = KeyValueCache(capacity=8)
    >>> key, value = cache.append(torch.zeros(1, 2, 5, 3), torch.zeros(1, 2, 5, 3))
    >>> len(cache), key.shape
    (5, torch.Size([1, 2, 5, 3]))
    """

    def __init__(self, capacity: int, window: int | None = None):
        self.capacity = capacity if window is None else min(capacity, 2 * window)
        self.window = window
        self.key = self.value = None
        self.num_tokens = self.num_stored = 0

    def __len__(self):
        return self.num_tokens

    @property
    def nbytes(self) -> int:
        """The number of bytes allocated; 0 before the first tokens."""
        return 0 if self.key is None else self.key.nbytes + self.value.nbytes

    def append(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Add the keys and values of new tokens; return those that these may attend to.

        key, value: (B, H_kv, T, K)
        returns: both (B, H_kv, S, K), the new ones last

        Raises ValueError if there is no room left, and for another shape than before.
        """
        stored = self.key, self.value
        if self.key is None:
            stored = self._allocate(key), self._allocate(value)
        start, num_new = self.num_stored, key.shape[-2]
        self._check_inputs(stored, (key, value), start + num_new)
        self.key, self.value = stored
        # The first new token attends to itself and to window - 1 tokens before it.
        past = start if self.window is None else min(start, self.window - 1)
        self.num_tokens += num_new
        if start + num_new > self.capacity:
            self.num_stored = self.window
            past = slice(start - past, start)
            return self._move(self.key, past, key), self._move(self.value, past, value)
        self.num_stored = end = start + num_new
        self.key[:, :, start:end], self.value[:, :, start:end] = key, value
        return self.key[:, :, start - past : end], self.value[:, :, start - past : end]

    def _allocate(self, new):
        return new.new_empty(*new.shape[:2], self.capacity, new.shape[-1])

    def _move(self, stored, past, new):
        visible = torch.cat((stored[:, :, past], new), dim=-2)
        stored[:, :, : self.window] = visible[:, :, -self.window :]
        return visible

    def _check_inputs(self, stored, given, num_tokens):
        num_new = given[0].shape[-2]
        for old, new in zip(stored, given):
            expected = *old.shape[:2], num_new, old.shape[-1]
            if new.shape != expected:
                raise ValueError(
                    f"expected shape {expected} as before, got {tuple(new.shape)}"
                )
        if num_tokens > self.capacity and (self.window or num_tokens) > self.capacity:
            raise ValueError(
                f"expected at most capacity = {self.capacity} tokens, got {num_tokens}"
            )
