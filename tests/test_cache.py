"""The cache of keys and values, `utils.cache`."""

import pytest
import torch

from utils.cache import KeyValueCache


def keys(num_tokens, start=0):
    """Return keys (2, 3, T, 5) that tell which token they belong to."""
    tokens = torch.arange(start, start + num_tokens, dtype=torch.float32)
    return tokens[:, None].expand(2, 3, num_tokens, 5)


def tokens_of(key):
    return key[0, 0, :, 0].tolist()


def test_more_tokens_than_there_is_room_for_are_named_and_change_nothing():
    cache = KeyValueCache(7)
    cache.append(keys(5), keys(5))
    with pytest.raises(ValueError, match="at most capacity = 7 tokens, got 8"):
        cache.append(keys(3), keys(3))
    assert len(cache) == 5
    assert tokens_of(cache.append(keys(2, 5), keys(2, 5))[0]) == [0, 1, 2, 3, 4, 5, 6]


def test_another_shape_or_dtype_than_before_is_named():
    cache = KeyValueCache(7)
    cache.append(keys(4), keys(4))
    for other in (keys(1)[:, :1], keys(1).half()):
        with pytest.raises(ValueError, match=r"H_kv = 3, T = 1, .*\(2, 1|32 on cpu"):
            cache.append(keys(1), other)


def test_a_first_append_that_fails_leaves_the_cache_empty():
    cache = KeyValueCache(7)
    for pair in ((keys(4), keys(3)), (keys(4), keys(4)[..., 0]), torch.zeros(2, 3)):
        with pytest.raises(ValueError, match=r"expected (key|value) \(B.* d_.\), got"):
            cache.append(*pair)
    assert (len(cache), cache.nbytes) == (0, 0)
    assert cache.append(keys(4)[:, :1], keys(4)[:, :1])[0].shape == (2, 1, 4, 5)


def test_gradients_through_what_was_overwritten_are_refused_and_never_wrong():
    cache, x = KeyValueCache(7), keys(1).clone().requires_grad_()
    first = cache.append(2 * x, x)[0].square().sum()
    second = cache.append(2 * x, x)[0].square().sum()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        (first + second).backward()
