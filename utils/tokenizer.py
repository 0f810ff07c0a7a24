"""Text to token ids: GPT-2's vocabulary, and byte-pair encoding from scratch."""

import base64
import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import pairwise

import regex  # comes with tiktoken; unlike re it knows \p{L}
import tiktoken

from utils.files import DATA
from utils.validation import (
    NonNegativeInt,
    check_inputs,
    check_ints,
    raise_unless,
    raise_value_error,
    to_int_tensor,
)

END_OF_TEXT = "<|endoftext|>"

# A word takes the space before it along; runs of other signs and of white space
# stay apart, so that no merge crosses the border of a word.
WORD = re.compile(r" ?\w+| ?[^\w\s]+|\s+")

# GPT-2's own rule (Radford et al. 2019), as tiktoken writes it.
GPT2_WORD = regex.compile(
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
)


def load_tokenizer() -> tiktoken.Encoding:
    """Build GPT-2's byte-pair tokenizer from the file in `data/`, without a network.

    returns: `tiktoken.Encoding` with 50,257 ids; `<|endoftext|>` is 50256

    >>> load_tokenizer().encode("Hello shiny sun!")
    [15496, 22441, 4252, 0]

    Source: Radford et al. 2019, section 2.2; ranks by OpenAI, MIT licence.
    """
    lines = (DATA / "r50k_base.tiktoken").read_bytes().splitlines()
    pairs = map(bytes.split, lines)
    ranks = {base64.b64decode(token): int(rank) for token, rank in pairs}
    return tiktoken.Encoding(
        name="gpt2",
        pat_str=GPT2_WORD.pattern,
        mergeable_ranks=ranks,
        special_tokens={END_OF_TEXT: len(ranks)},
    )


@check_inputs()
def merge(
    ids: Iterable[int], pair: tuple[int, int], new_id: NonNegativeInt
) -> list[int]:
    """Replace each occurrence of a pair of neighbours by one new id.

    ids: read from left to right and left untouched
    new_id: occurs neither in them nor in the pair
    returns: a new list; in `aaa` the pair `aa` is merged once, at the left

    >>> merge([1, 1, 1, 2], (1, 1), 9)
    [9, 1, 2]
    """
    raise_unless(len(pair) == 2, "a pair of ids", repr(pair))
    if not isinstance(ids, list | tuple | bytes):  # converting these would take time
        ids = to_int_tensor("ids", ids).tolist()
    check_ints("ids", [*pair, *ids])
    raise_unless(new_id not in [*pair, *ids], "a new_id that is no id yet", new_id)
    return _merge(ids, pair, new_id)


def _merge(ids, pair, new_id):
    merged, i = [], 0
    while i < len(ids):
        if tuple(ids[i : i + 2]) == pair:
            merged.append(new_id)
            i += 2
        else:
            merged.append(ids[i])
            i += 1
    return merged


@check_inputs()
def count_pairs(words: dict[tuple[int, ...], int]) -> Counter:
    """Count neighbouring ids over all words, each as often as its word occurs.

    words: from a tuple of ids to the number of its occurrences
    returns: Counter of pairs of ids, only of those that occur

    >>> count_pairs({(1, 2, 1): 3, (2, 1): 1, (5, 6): 0})
    Counter({(2, 1): 4, (1, 2): 3})
    """
    counts = Counter()
    for ids, occurrences in words.items():
        for pair in pairwise(ids):
            counts[pair] += occurrences
    return +counts  # without zeros


@check_inputs()
def train_bpe(
    text: str, num_merges: NonNegativeInt, pattern: re.Pattern | regex.Pattern = WORD
) -> dict[tuple[int, int], int]:
    """Learn byte-pair merges: join the most frequent pair, again and again.

    The text is split into words first, and a merge never crosses their border. Of
    equally frequent pairs the one with the smaller ids comes first. Only the words
    that hold the merged pair are counted again.

    pattern: its matches are the words, and together the text
    returns: from a pair of ids to its new id, in the order learned; ids 0 ... 255 are
        the bytes, new ids start at 256. Fewer than `num_merges` if no pair is left.

    >>> train_bpe("low lower lowest", num_merges=2)
    {(108, 111): 256, (256, 119): 257}

    Source: Sennrich et al. 2016, section 3.2; on bytes: Radford et al. 2019.
    """
    word_counts = Counter(_split_words(text, pattern))
    words = [list(word.encode("utf-8")) for word in word_counts]
    occurrences = list(word_counts.values())
    pair_counts, words_with = Counter(), defaultdict(set)  # pair -> indices of words

    def count_pairs_of(index, sign):
        for pair in pairwise(words[index]):
            pair_counts[pair] += sign * occurrences[index]
            if pair_counts[pair] == 0:
                del pair_counts[pair]
            if sign > 0:
                words_with[pair].add(index)

    for index in range(len(words)):
        count_pairs_of(index, 1)
    merges = {}
    while len(merges) < num_merges and pair_counts:
        pair = min(pair_counts, key=lambda pair: (-pair_counts[pair], pair))
        merges[pair] = 256 + len(merges)
        for index in words_with.pop(pair):
            count_pairs_of(index, -1)
            words[index] = _merge(words[index], pair, merges[pair])
            count_pairs_of(index, 1)
    return merges


@check_inputs()
def encode_bpe(
    text: str,
    merges: dict[tuple[int, int], int],
    pattern: re.Pattern | regex.Pattern = WORD,
) -> list[int]:
    """Turn text into ids with learned merges, the earliest learned merge first.

    merges: as `train_bpe` returns them
    pattern: as in training; its matches together are the text

    >>> encode_bpe("slow", train_bpe("low lower lowest", num_merges=2))
    [115, 257]
    """
    token_bytes(merges)  # checks them
    ids = [*merges.values()]  # the smallest one is merged first
    is_sorted, expected = ids == sorted(ids), "ids that rise in the order learned"
    raise_unless(is_sorted, expected, f"{ids!s:.80}")
    words = _split_words(text, pattern)
    pieces = {word: _encode_word(word.encode("utf-8"), merges) for word in set(words)}
    return [i for word in words for i in pieces[word]]


def _split_words(text, pattern):
    """Split a text into the matches of a pattern, and make sure that none is lost."""
    if surrogate := re.search("[\ud800-\udfff]", text):  # half a character of UTF-16
        raise_value_error("a text that UTF-8 can encode", repr(surrogate[0]))
    words = [match[0] for match in pattern.finditer(text)]
    expected = "a pattern whose matches together are the text"
    received = f"{pattern.pattern!r}, which loses a part of it"
    raise_unless("".join(words) == text, expected, received)
    return words


def _encode_word(word, merges):
    """Encode the bytes of one word."""
    ids = list(word)
    while pairs := [pair for pair in pairwise(ids) if pair in merges]:
        pair = min(pairs, key=merges.get)
        ids = _merge(ids, pair, merges[pair])
    return ids


def decode_bpe(ids: Iterable[int], merges: dict[tuple[int, int], int]) -> str:
    """Turn ids back into text; bytes that are no character become U+FFFD.

    ids: bytes or learned; one text, such as a row of what `generate` returns
    merges: in the order learned, to ids that aren't used yet

    >>> merges = train_bpe("low lower lowest", num_merges=2)
    >>> decode_bpe(encode_bpe("slow", merges), merges)
    'slow'
    """
    pieces = token_bytes(merges)
    ids = to_int_tensor("ids of one text", ids).tolist()
    unknown_ids = {*ids} - pieces.keys()
    raise_unless(not unknown_ids, "ids of bytes or of merges", *[*unknown_ids][:1])
    return b"".join(pieces[i] for i in ids).decode("utf-8", errors="replace")


@check_inputs()
def token_bytes(merges: dict[tuple[int, int], int]) -> dict[int, bytes]:
    """Return the bytes that each id stands for.

    merges: from pairs of known ids to ids that aren't used yet
    returns: dict from the 256 bytes, and then from the new ids
    """
    pieces = {byte: bytes([byte]) for byte in range(256)}
    for pair, new_id in merges.items():
        is_known, received = pieces.keys() >= {*pair}, f"{pair} before its parts"
        raise_unless(is_known, "merges in the order learned", received)
        raise_unless(new_id not in pieces, f"an unused id for {pair}", new_id)
        pieces[new_id] = b"".join(pieces[i] for i in pair)
    return pieces
