"""The tokenizers, `utils.tokenizer`."""

import random
import re
import socket

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from tests.small_layers import everywhere
from utils.data import HUMAN_RIGHTS, load_text, sliding_windows
from utils.tokenizer import (
    GPT2_WORD,
    _encode_word,
    count_pairs,
    decode_bpe,
    encode_bpe,
    load_tokenizer,
    merge,
    train_bpe,
)


def test_the_tokenizer_has_the_ids_of_gpt2_without_a_network(monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    tokenizer = load_tokenizer()
    assert (tokenizer.n_vocab, tokenizer.eot_token) == (50257, 50256)
    assert tokenizer.encode("Hello, world!") == [15496, 11, 995, 0]


TOKENIZER, MERGES = load_tokenizer(), train_bpe(load_text()[:3000], 100)


@pytest.mark.parametrize("ids", ["some words", [[1], [2, 3]], None, [1.0, 2.0], [True]])
def test_what_is_no_sequence_of_whole_numbers_is_named(ids):
    error = ValueError if ids in ([1.0, 2.0], [True]) else TypeError
    with pytest.raises(error, match="one sequence of whole numbers"):
        sliding_windows(ids, context_length=1, stride=1)


@everywhere
@given(st.text())
@example("naïve café 東京 🙂\n\n\t x")
def test_encoding_and_decoding_give_every_text_back(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text)) == text
    assert decode_bpe(encode_bpe(text, MERGES), MERGES) == text


BLOCKS = [range(128), range(0x250), range(0x370, 0x400), range(0x900, 0xD00)]
BLOCKS += [range(0x2000, 0x3100), range(0x1F300, 0x1FB00), [0x20, 0x0A, 0x27]]
BLOCKS += [range(0xD800), range(0xE000, 0x110000)]  # all but the surrogates


def test_our_encoder_with_the_merges_and_the_pattern_of_gpt2_gives_its_ids():
    merges = {}  # found as on the page of 01
    for new_id in range(256, 50_256):
        piece = TOKENIZER.decode_single_token_bytes(new_id)
        merges[tuple(_encode_word(piece, merges))] = new_id
    byte_ids = [TOKENIZER.encode_single_token(bytes([byte])) for byte in range(256)]
    draw = random.Random(0)
    texts = [load_text(), *HUMAN_RIGHTS.values()]
    for _ in range(10_000):
        blocks = draw.choices(BLOCKS, k=draw.randrange(1, 12))
        texts.append("".join(chr(draw.choice(block)) for block in blocks))
    for start in range(0, len(texts), 100):  # merges are checked in each call
        text = "".join(texts[start : start + 100])
        ids = encode_bpe(text, merges, GPT2_WORD)
        ids = [byte_ids[i] if i < 256 else i for i in ids]
        assert ids == TOKENIZER.encode(text, disallowed_special=()), ascii(text)


def test_a_pattern_that_loses_a_part_of_the_text_is_refused():
    for call in (lambda p: train_bpe("a b", 1, p), lambda p: encode_bpe("a b", {}, p)):
        with pytest.raises(ValueError, match="which loses a part of it"):
            call(re.compile(r"\w+"))
        call(re.compile(r"( ?)(\w+)"))  # what its groups match doesn't count


def test_decoding_takes_one_text_as_a_list_a_tensor_or_a_generator():
    ids = encode_bpe("low lower", MERGES)
    for given_ids in (ids, torch.tensor(ids), torch.tensor([ids])[0], iter(ids)):
        assert decode_bpe(given_ids, MERGES) == "low lower"
    with pytest.raises(ValueError, match=r"ids of one text .* \(1, 5\)"):
        decode_bpe(torch.tensor([ids]), MERGES)


@pytest.mark.parametrize(
    "merges, message",
    [
        ({(256, 99): 257, (97, 98): 256}, r"\(256, 99\) before its parts"),
        ({("a", "b"): 256}, r"order learned, got \('a', 'b'\) before its parts"),
        ({(97, 98): 97}, r"an unused id for \(97, 98\), got 97"),
        ({(97,): 256}, r"pairs of ids, got \(97,\)"),
        ({"ab": 256}, "pairs of ids, got 'ab'"),
        ({(97, True): 256}, "ids in pairs as whole numbers, got True"),
        ({(97, 98.0): 256}, "ids in pairs as whole numbers, got 98.0"),
        ({(97, 97): "x"}, "new_id to be a whole number .* got 'x'"),
    ],
)
def test_damaged_merges_neither_encode_nor_decode(merges, message):
    for call in (lambda: encode_bpe("ab", merges), lambda: decode_bpe([97], merges)):
        with pytest.raises(ValueError, match=message):
            call()


def test_unknown_ids_and_other_classes_are_named():
    for call, message in (
        (lambda: decode_bpe([256], {(97, 98): 300}), "of bytes or of merges, got 256"),
        (lambda: count_pairs({(1, 2): -3}), "occurrences to be .* 0 or more, got -3"),
        (lambda: count_pairs({"abab": 2}), "ids of a word as a tuple, got str"),
        (lambda: count_pairs({(1, "b"): 2}), "a word as whole numbers, got 'b'"),
        (lambda: merge([1, 2], (None, []), 9), r"a pair as one .* \(None, \[\]\)"),
        (lambda: merge("abab", (97, 98), 9), "ids as one sequence of .* got 'abab'"),
        (lambda: merge([1.0, 1.0], (1, 1), 9), "ids as one sequence .* torch.float32"),
        (lambda: train_bpe("\ud800", 1), "UTF-8 can encode, got '.ud800'"),
        (lambda: decode_bpe([97], [(97, 98)]), "merges as a dict, got list"),
        (
            lambda: decode_bpe({97, 98}, {}),
            "ids of one text as .* got {97, 98}",
        ),
        (lambda: decode_bpe([97.0], {}), "ids of one text .* got torch.float32"),
        (lambda: train_bpe(b"aa", 1), "text as a str, got bytes"),
        (lambda: sliding_windows([], 1, 1), "more than .* got 0"),
        (lambda: sliding_windows([-1, -2], 1, 1), "token ids from 0 to inf, got -1"),
        (lambda: encode_bpe("aa", {}, r"\w"), "a compiled pattern, got"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()
