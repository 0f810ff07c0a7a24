"""What notebook 14 states of its trainings, measured with any seed."""

from tests.seeds import definitions

ALLOWED = {  # of what is far, of what is near
    "all keys and values": ((0.93, 1), (0.93, 1)),
    "one head for all": ((0.75, 1), (0.75, 1)),
    "a latent": ((0.75, 1), (0.75, 1)),
    "a window": ((0.08, 0.13), (0.45, 0.65)),
}


def main(seed):
    """Return statement -> (measured, lowest allowed, highest allowed)."""
    book, found = definitions("14_a_cache_that_stays_small"), {}
    for name, limits in ALLOWED.items():
        shares = book["share_found"](book["KINDS"][name], seed)
        for place, share, limit in zip(("far", "near"), shares, limits):
            found[f"{name}: {place}"] = (share, *limit)
    gap = found["a latent: far"][0] - found["one head for all: far"][0]
    found["a latent minus one head: far"] = (gap, -0.25, 0.1)
    return found
