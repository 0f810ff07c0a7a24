"""Each test pins one claim about the experiments of the notebooks."""

import functools

import pytest
import torch

from tests.seeds import definitions
from utils.experiments import translation
from utils.experiments.pairs import draw_pairs
from utils.experiments.translation import ENGLISH, FRENCH, encode, shift_right

page = functools.cache(definitions)  # not while tests are collected
PRONOUNS = "deeper/heads_that_resolve_it"
TRANSLATION = "11_translation"


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


@pytest.mark.parametrize("num_letters", [None, 3])
def test_the_answer_is_the_last_digit_of_the_letter_asked_for(num_letters):
    lists = draw_pairs(50, 11, num_letters)
    for row, digits, asked, answer in zip(*(t.tolist() for t in lists)):
        assert dict(zip(row, digits))[asked] == answer
        assert num_letters is None or max(row) < num_letters
        assert num_letters is not None or len(set(row)) == 11


@pytest.fixture(scope="module")
def pairs():
    return translation.held_out_pairs()


@pytest.fixture(scope="module")
def models():
    """Return a recurrent translator and a transformer, untrained."""
    torch.manual_seed(0)
    french, english = len(FRENCH), len(ENGLISH)

    def same_vector(state, context, vector, mask):
        return vector, torch.zeros(mask.shape)

    recurrent = translation.Translator(
        translation.RecurrentEncoder(french, 8),
        page(TRANSLATION)["RecurrentDecoder"](english, 8, same_vector),
    )
    transformer = translation.Translator(
        page(TRANSLATION)["TransformerEncoder"](french, 8, 2),
        page(TRANSLATION)["TransformerDecoder"](english, 8, 2),
    )
    return [recurrent.eval(), transformer.eval()]


def test_a_decoder_does_not_look_at_later_words(pairs, models):
    source, target = encode(pairs[:3])
    inputs = shift_right(target)
    for model in models:
        whole = model(source, inputs)[0]
        first = model(source, inputs[:, :2])[0]
        torch.testing.assert_close(whole[:, :2], first)


def test_no_pair_of_the_test_occurs_in_training(pairs):
    assert len(pairs) == 600
    assert not {*pairs} & {*translation.translation_pairs(32_000, seed=0)}
