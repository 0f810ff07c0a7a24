"""What a layer remembers while it writes: the keys and values of the tokens so far."""

import torch


class KeyValueCache:
    """Keep the keys and values of the tokens seen so far, for one attention layer.

    capacity: the number of tokens to set room aside for, once, at the first of them
    window: of a layer with a sliding window, for which two windows are room enough:
        when they are full, the newest window moves to the front and the rest is lost
    key, value: (B, H_kv, room, K), written in place; None before the first tokens

    `len` counts all tokens seen, those lost included. Made for writing: what is kept is
    overwritten, so a gradient that would need it raises PyTorch's RuntimeError.

    >>> cache = KeyValueCache(capacity=8)
    >>> key, value = cache.append(torch.zeros(1, 2, 5, 3), torch.zeros(1, 2, 5, 3))
    >>> len(cache), key.shape
    (5, torch.Size([1, 2, 5, 3]))
    """

    def __init__(self, capacity, window=None):
        self.capacity = capacity if window is None else min(capacity, 2 * window)
        self.window = window
        self.key = self.value = None
        self.seen = self.held = 0

    def __len__(self):
        return self.seen

    @property
    def nbytes(self):
        """How many bytes are set aside; 0 before the first tokens."""
        return 0 if self.key is None else self.key.nbytes + self.value.nbytes

    def append(self, key, value):
        """Add the keys and values of new tokens; return those that these may see.

        key, value: (B, H_kv, T, K)
        returns: both (B, H_kv, S, K), the new ones last

        Raises ValueError where the room is used up, and for another shape than before.
        """
        room = self.key, self.value
        if self.key is None:
            room = self._set_aside(key), self._set_aside(value)
        start, num_new = self.held, key.shape[-2]
        self._check(room, (key, value), start + num_new)
        self.key, self.value = room
        # The first of the new tokens sees itself and window - 1 of those before it.
        past = start if self.window is None else min(start, self.window - 1)
        self.seen += num_new
        if start + num_new > self.capacity:
            self.held = self.window
            seen = slice(start - past, start)
            return self._move(self.key, seen, key), self._move(self.value, seen, value)
        self.held = end = start + num_new
        self.key[:, :, start:end], self.value[:, :, start:end] = key, value
        return self.key[:, :, start - past : end], self.value[:, :, start - past : end]

    def _set_aside(self, new):
        return new.new_empty(*new.shape[:2], self.capacity, new.shape[-1])

    def _move(self, kept, seen, new):
        together = torch.cat((kept[:, :, seen], new), dim=-2)
        kept[:, :, : self.window] = together[:, :, -self.window :]
        return together

    def _check(self, room, given, num_tokens):
        num_new = given[0].shape[-2]
        for kept, new in zip(room, given):
            batch_size, heads, _, width = kept.shape
            if new.shape != (batch_size, heads, num_new, width):
                expected = f"({batch_size}, {heads}, {num_new}, {width})"
                got = tuple(new.shape)
                raise ValueError(f"expected shape {expected} as before, got {got}")
        if num_tokens > self.capacity and (self.window or num_tokens) > self.capacity:
            raise ValueError(
                f"expected at most capacity = {self.capacity} tokens, got {num_tokens}"
            )
