"""What notebook 03 states about averages of random vectors, with any seed."""

from tests.seeds import definitions


def main(seed):
    """Read words back from their average; return the shares that were found."""
    found = definitions("03_context_vectors")["words_found"]

    def both(num_words, width):
        return [found(num_words, width, subtract, seed) for subtract in (0, 1)]

    fits, subtracting = both(32, 64)
    return {
        "4 words from 64 numbers, the worse way": (min(both(4, 64)), 0.8, 1),
        "32 words from 64 numbers, best fits": (fits, 0.2, 1 / 3),
        "the same, subtracting minus best fits": (subtracting - fits, -0.3, -0.01),
        "32 words, 256 numbers minus 64": (min(both(32, 256)) - fits, 0.2, 1),
        "64 words from 256 numbers, the better way": (max(both(64, 256)), 0, 0.9),
    }
