"""What `utils.require` says of inputs that can't be used."""

import pytest
import torch

from utils import require

X = torch.zeros(3, 4)


@pytest.mark.parametrize(
    "function, inputs, message",
    [
        (require.that, (False, "one", X.shape, 5), r"one, got \(3, 4\) and 5$"),
        (require.axes, ("x", X, "..., H, T, d_k"), r"H, T, d_k\), got \(3, 4\)"),
        (require.floating, ("x", X.long()), "x of floating-point numbers, got torch"),
        (require.real, ("x", X > 0), "x as real numbers, got torch.bool"),
        (require.even, ("d_model", 5), "an even d_model of 2 or more, got 5"),
        (require.number, ("p", 10**400, 1), "a finite p from 0 to 1, got 1000"),
        (require.number, ("p", torch.nan), "a finite p from 0, got nan"),
        (require.mask, ("mask", X, X.shape), "boolean mask, got torch.float32"),
        (require.mask, ("mask", X.T > 0, X.shape), r"to \(3, 4\), got \(4, 3\)"),
        (require.token_ids, (X.long(), 0), "vocabulary of .* got none"),
        (require.alike, (), "query and key of one dtype, got torch.float32 and"),
        (require.query_key_value, (X, X.to("meta")), "one device, got cpu and meta"),
        (require.query_key_value, (X, X.T), r"one width d_k, got \(3, 4\) and"),
        (require.query_key_value, (X, X, X[:2]), "a value for each key, got"),
        (require.query_key_value, (X, X[0]), r"tokens, width\) of each"),
        (
            require.query_key_value,
            (X.expand(2, 3, 4), X.expand(3, 3, 4)),
            r"leading axes that fit, got \[\(2, 3,",
        ),
    ],
)
def test_what_cannot_be_used_is_named(function, inputs, message):
    options = {} if inputs else {"query": X, "key": X.double()}
    with pytest.raises(ValueError, match=message):
        function(*inputs, **options)


@pytest.mark.parametrize("size", [-4, 10**30, 2.5, True, "5", None])
def test_a_size_is_a_whole_number(size):
    with pytest.raises(ValueError, match="d_in to be a whole .* of 1 or more.* got"):
        require.sizes(d_in=size)
