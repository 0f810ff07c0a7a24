"""Each test pins one sentence about `utils.tokenizer`."""

import socket

import pytest

from utils.data import load_text
from utils.tokenizer import decode_bpe, encode_bpe, load_tokenizer, train_bpe


def test_the_tokenizer_has_the_ids_of_gpt2_without_a_network(monkeypatch):
    monkeypatch.setattr(socket, "socket", None)
    tokenizer = load_tokenizer()
    assert (tokenizer.n_vocab, tokenizer.eot_token) == (50257, 50256)
    assert tokenizer.encode("Hello, world!") == [15496, 11, 995, 0]
    assert tokenizer.encode("don't") == [9099, 470]


@pytest.mark.parametrize("text", ["", " ", "naïve café 東京 🙂\n\n\t x", "don't  stop"])
def test_the_tokenizer_gives_every_text_back(text):
    tokenizer = load_tokenizer()
    assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("text", ["", "aaa", "the naïve 🙂 café\n"])
def test_encoding_and_decoding_give_every_text_back(text):
    merges = train_bpe(load_text()[:3000], 100)
    assert decode_bpe(encode_bpe(text, merges), merges) == text


def test_encoding_merges_by_the_rank_learned():
    merges = {(ord("b"), ord("c")): 256, (ord("a"), ord("b")): 257}
    assert encode_bpe("abc", merges) == [ord("a"), 256]


def test_decoding_names_an_unknown_id():
    with pytest.raises(ValueError, match="ids from 0 to 255, got 256"):
        decode_bpe([256], {})
