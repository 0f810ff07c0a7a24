"""The experiments of the notebooks."""

import functools

import pytest
import torch

from tests.seeds import definitions

page = functools.cache(definitions)  # not while tests are collected
TRANSLATION = "12_translation"
TRANSFORMER = "deeper/the_transformer_of_2017"
PRONOUNS = "deeper/heads_that_resolve_it"


@functools.cache
def nouns():
    kinds = (page(PRONOUNS)[name] for name in ("CREATURES", "VEHICLES", "PLACES"))
    return {noun for kind in kinds for noun in kind}


def test_held_out_scenes_never_occur_in_training():
    def scenes(*options):
        return {
            frozenset(nouns() & {*words} | {words[pronoun + 3]})
            for words, pronoun, _ in page(PRONOUNS)["pronoun_sentences"](*options)
        }

    held_out = scenes(1000, True)
    assert not scenes(5000) & held_out
    for quality in ("tired", "wide"):
        assert {"animal", "street", quality} in held_out


@pytest.mark.parametrize("kind", ["OneCall", "RecurrentDecoder", "TransformerDecoder"])
def test_a_decoder_does_not_look_ahead(kind):
    names, heads = page(TRANSLATION), [4] * (kind == "TransformerDecoder")
    torch.manual_seed(0)
    decoder = page(TRANSFORMER if heads else TRANSLATION)[kind](11, 8, *heads)
    encoder = names["RecurrentEncoder"](7, 8)
    translator = names["Translator"](encoder, decoder)
    source, words = torch.randint(1, 7, (2, 5)), torch.randint(1, 11, (2, 6))
    other = words.clone()
    other[:, 4] = words[:, 4] % 10 + 1  # another word
    before, after = translator(source, words)[0], translator(source, other)[0]
    torch.testing.assert_close(after[:, :4], before[:, :4])
    assert not torch.allclose(after[:, 4], before[:, 4])


def test_no_pair_of_the_test_occurs_in_training():
    names = page(TRANSLATION)
    pairs = names["held_out_pairs"]()
    assert len(pairs) == 600
    assert not {*pairs} & {*names["translation_pairs"](32_000, seed=0)}
