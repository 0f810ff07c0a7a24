"""What notebook 03 states about averages of random vectors, with any seed."""

from tests.seeds import definitions


def main(seed):
    """Read words back from their average; return the shares that were found."""
    found = definitions("03_context_vectors")["words_found"]
    return {
        "2 words from 64 numbers": (found(2, 64, seed), 0.98, 1),
        "32 words from 64 numbers": (found(32, 64, seed), 0.2, 1 / 3),
        "2 words from 256 numbers": (found(2, 256, seed), 0.98, 1),
        "64 words from 256 numbers": (found(64, 256, seed), 0.5, 0.65),
    }
