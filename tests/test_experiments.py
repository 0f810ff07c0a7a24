"""Each test pins one claim about the experiments of the notebooks."""

import functools

import pytest
import torch

from tests.seeds import definitions
from utils.experiments import translation
from utils.experiments.pairs import NONE, RESET, draw_pairs, draw_resets
from utils.experiments.rooms import draw_rooms
from utils.experiments.translation import ENGLISH, FRENCH, PAD, encode, shift_right
from utils.experiments.words_back import draw_words_back

page = functools.cache(definitions)  # not while tests are collected
PRONOUNS = "deeper/heads_that_resolve_it"
TRANSLATION = "11_translation"


@functools.cache
def nouns():
    kinds = (page(PRONOUNS)[name] for name in ("CREATURES", "VEHICLES", "PLACES"))
    return {noun for kind in kinds for noun in kind}


def test_a_room_answers_with_the_extension_of_the_person_wanted():
    people, answers = draw_rooms(3)
    for room, extensions in zip(people, answers):
        for person, answer in zip(room, extensions):
            wanted = (room[:, :16] == person[16:32]).all(dim=1).nonzero().item()
            assert room[wanted, 32:].argmax() == answer


def test_answers_are_the_words_before_and_are_left_out_where_there_are_too_few():
    words, answers = draw_words_back(3, num_back=2, num_words=7)
    for row, wanted in zip(words.tolist(), answers.tolist()):
        assert wanted[:2] == [[-100, -100]] * 2
        assert wanted[2:] == [[row[i - 1], row[i - 2]] for i in range(2, 7)]


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


def test_neither_position_nor_noun_tells_what_the_pronoun_stands_for():
    sentences = page(PRONOUNS)["pronoun_sentences"](5000)
    is_first = [
        noun == min(i for i, word in enumerate(words) if word in nouns())
        for words, _, noun in sentences
    ]
    assert 0.45 < sum(is_first) / len(is_first) < 0.55
    for noun in ("animal", "bus", "street"):
        is_chosen = [words[i] == noun for words, _, i in sentences if noun in words]
        assert 0.4 < sum(is_chosen) / len(is_chosen) < 0.6


@pytest.mark.parametrize("num_letters", [None, 3])
def test_the_answer_is_the_last_digit_of_the_letter_asked_for(num_letters):
    lists = draw_pairs(50, 11, num_letters)
    for row, digits, asked, answer in zip(*(t.tolist() for t in lists)):
        assert dict(zip(row, digits))[asked] == answer
        assert num_letters is None or max(row) < num_letters
        assert num_letters is not None or len(set(row)) == 11


def test_a_list_with_resets_asks_for_the_last_digit_since_the_last_reset():
    for tokens, digits, asked, answer in zip(*(t.tolist() for t in draw_resets(99, 9))):
        last = {}
        for token, digit in zip(tokens, digits):
            last = {} if token == RESET else last | {token: digit}
        assert last.get(asked, NONE) == answer


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


def test_padding_changes_no_output(pairs, models):
    source, target = encode(pairs[:3])
    longer = torch.nn.functional.pad(source, (0, 16), value=PAD)
    for model in models:
        outputs = [model(ids, shift_right(target))[0] for ids in (source, longer)]
        torch.testing.assert_close(*outputs)


@pytest.mark.parametrize("wrong_word", [None, 2])
def test_a_translation_counts_only_if_every_word_is_right(pairs, wrong_word):
    target = encode(pairs[:3])[1]
    if wrong_word is not None:
        target[1, wrong_word] = PAD

    def knows_all(source, inputs):
        return torch.nn.functional.one_hot(target, len(ENGLISH)).float(), None

    hits = translation.exact_matches(knows_all, pairs[:3])
    assert hits.tolist() == [1, wrong_word is None, 1]


def test_no_pair_of_the_test_occurs_in_training(pairs):
    assert len(pairs) == 600
    assert not {*pairs} & {*translation.translation_pairs(32_000, seed=0)}


def test_an_alignment_has_right_places_and_leaves_out_no_french_word(pairs):
    align = page(TRANSLATION)["align"]
    for french, english in pairs:
        places = align(french, english)
        assert len(places) == len(english.split())
        assert set().union(*places) == set(range(len(french.split())))
    french = "mon chat noir ne cherche pas la lune"
    found = align(french, "my black cat does not look for the moon")
    assert found == [{0}, {2}, {1}, {3}, {3, 5}, {4}, {4}, {6}, {7}]


@pytest.mark.parametrize("hidden", [[], [0], [1, 2], range(3)])
def test_words_are_hidden_from_the_decoder_only(models, hidden):
    source, target = encode([("un chat", "a cat")])
    for model in models:
        found = page(TRANSLATION)["probs_without"](model, ("un chat", "a cat"), hidden)
        context, vector, mask = model.encode(source)
        visible = torch.tensor([[place not in hidden for place in range(3)]])
        given = shift_right(target), context, vector, mask & visible
        logits, weights = model.decoder(*given)
        probs = logits[0].softmax(dim=-1)[range(3), target[0]]
        torch.testing.assert_close(found, (probs, weights[0]))
