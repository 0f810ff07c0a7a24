"""The tokenizers, `utils.tokenizer`."""

import random
import re
import socket

import torch
from hypothesis import example, given
from hypothesis import strategies as st

from tests.small_layers import everywhere
from utils.data import HUMAN_RIGHTS, load_text
from utils.tokenizer import (
    GPT2_WORD,
    _encode_word,
    decode_bpe,
    encode_bpe,
    load_tokenizer,
    train_bpe,
)


def test_the_tokenizer_has_the_ids_of_gpt2_without_a_network(monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    tokenizer = load_tokenizer()
    assert (tokenizer.n_vocab, tokenizer.eot_token) == (50257, 50256)
    assert tokenizer.encode("Hello, world!") == [15496, 11, 995, 0]


TOKENIZER, MERGES = load_tokenizer(), train_bpe(load_text()[:3000], 100)


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


def test_what_the_groups_of_a_pattern_match_does_not_count():
    pattern = re.compile(r"( ?)(\w+)")
    assert encode_bpe("a b", train_bpe("a b", 1, pattern), pattern) == [97, 256]


def test_decoding_takes_one_text_as_a_list_a_tensor_or_a_generator():
    ids = encode_bpe("low lower", MERGES)
    for given_ids in (ids, torch.tensor(ids), torch.tensor([ids])[0], iter(ids)):
        assert decode_bpe(given_ids, MERGES) == "low lower"
