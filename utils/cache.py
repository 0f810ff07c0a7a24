"""What a layer remembers during generation: keys and values of the tokens so far."""

from torch import Tensor


class KeyValueCache:
    """Store the keys and values of the tokens so far, for one attention layer.

    capacity: the number of tokens to allocate memory for, once, at the first of them
    key, value: (B, H_kv, capacity, K), written in place; None before the first tokens

    Stored tensors are overwritten, so a gradient that would need them raises PyTorch's
    RuntimeError: the cache is for generation.

    >>> import torch
    >>> cache = KeyValueCache(capacity=8)
    >>> key, value = cache.append(torch.zeros(1, 2, 5, 3), torch.zeros(1, 2, 5, 3))
    >>> len(cache), key.shape
    (5, torch.Size([1, 2, 5, 3]))
    """

    def __init__(self, capacity: int):
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

        key, value: (B, H_kv, T, K)
        returns: both (B, H_kv, S, K), the new ones last

        Raises ValueError if there is no room left, and for another shape than before.
        """
        start, end = self.num_tokens, self.num_tokens + key.shape[-2]
        if end > self.capacity:
            raise ValueError(
                f"expected at most capacity = {self.capacity} tokens, got {end}"
            )
        if self.key is None:
            self.key, self.value = self._allocate(key), self._allocate(value)
        for stored, new in ((self.key, key), (self.value, value)):
            expected = stored[:, :, start:end].shape
            if new.shape != expected:
                raise ValueError(
                    f"expected shape {tuple(expected)} as before, "
                    f"got {tuple(new.shape)}"
                )
        self.key[:, :, start:end], self.value[:, :, start:end] = key, value
        self.num_tokens = end
        return self.key[:, :, :end], self.value[:, :, :end]

    def _allocate(self, new):
        return new.new_empty(*new.shape[:2], self.capacity, new.shape[-1])
