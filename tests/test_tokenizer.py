"""Each test pins one claim about `utils.tokenizer`."""

import socket

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from tests.small_layers import everywhere
from utils.data import load_text
from utils.tokenizer import decode_bpe, encode_bpe, load_tokenizer, train_bpe


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


def test_encoding_merges_by_the_rank_learned():
    merges = {(ord("b"), ord("c")): 256, (ord("a"), ord("b")): 257}
    assert encode_bpe("abc", merges) == [ord("a"), 256]


def test_decoding_takes_one_text_as_a_list_a_tensor_or_a_generator():
    ids = encode_bpe("low lower", MERGES)
    for given_ids in (ids, torch.tensor(ids), torch.tensor([ids])[0], iter(ids)):
        assert decode_bpe(given_ids, MERGES) == "low lower"
    with pytest.raises(ValueError, match=r"the ids of one text, got \(1, \d+\)"):
        decode_bpe(torch.tensor([ids]), MERGES)


def test_decoding_names_an_unknown_id():
    with pytest.raises(ValueError, match="ids from 0 to 255, got 256"):
        decode_bpe([256], {})
