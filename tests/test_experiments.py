"""Each test pins one sentence about the experiments in `utils/experiments`."""

import math

import pytest
import torch

from utils.attention import MultiHeadAttention
from utils.experiments import letters, translation
from utils.experiments.alphabets import AGAIN, BEGIN, draw_alphabets
from utils.experiments.digits import split_digits
from utils.experiments.pairs import draw_pairs, draw_two_way
from utils.experiments.pronouns import CREATURES, PLACES, VEHICLES, pronoun_sentences
from utils.experiments.rooms import draw_rooms
from utils.experiments.story import story_letters
from utils.experiments.strands import hairpins
from utils.experiments.streams import NONE, RESET, draw_streams
from utils.experiments.translation import (
    END,
    ENGLISH,
    FRENCH,
    PAD,
    encode,
    shift_right,
)
from utils.experiments.words_back import draw_words_back

NOUNS = {*CREATURES, *VEHICLES, *PLACES}


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


@pytest.mark.parametrize("num_back", [0, 7])
def test_a_sentence_in_which_no_word_has_all_answers_is_rejected(num_back):
    with pytest.raises(ValueError, match=f"from 1 to 6, got {num_back}"):
        draw_words_back(3, num_back, num_words=7)


def test_a_pronoun_sentence_marks_the_pronoun_and_its_noun():
    for words, pronoun, noun in pronoun_sentences(300, seed=3):
        assert words[pronoun : pronoun + 3] == ["it", "was", "too"]
        assert words[noun] in NOUNS
        assert sum(word in NOUNS for word in words) == 2


def test_held_out_scenes_never_occur_in_training():
    def scenes(*options):
        return {
            frozenset(NOUNS & {*words} | {words[pronoun + 3]})
            for words, pronoun, _ in pronoun_sentences(*options)
        }

    held_out = scenes(1000, True)
    assert not scenes(5000) & held_out
    for quality in ("tired", "wide"):
        assert {"animal", "street", quality} in held_out


def test_neither_position_nor_noun_tells_what_the_pronoun_stands_for():
    sentences = pronoun_sentences(5000)
    is_first = [
        noun == min(i for i, word in enumerate(words) if word in NOUNS)
        for words, _, noun in sentences
    ]
    assert 0.45 < sum(is_first) / len(is_first) < 0.55
    for noun in ("animal", "bus", "street"):
        is_chosen = [words[i] == noun for words, _, i in sentences if noun in words]
        assert 0.4 < sum(is_chosen) / len(is_chosen) < 0.6


@pytest.mark.parametrize("rotary", [False, True])
def test_the_layer_of_a_letter_reader_computes_what_the_layer_of_06_does(rotary):
    layer = MultiHeadAttention(32, 32, 32, 0.0, 4, rotary=rotary)
    score = letters.rotary_scores if rotary else letters.plain_scores
    reader, x = letters.LetterReader(score), torch.randn(2, 32, 32)
    reader.attention.load_state_dict(layer.state_dict())
    torch.testing.assert_close(reader.attention(x), layer(x))


def test_every_length_asks_for_the_same_letters():
    asked, num_letters = [], len(story_letters()[0])

    def no_idea(token_ids):
        asked.append(token_ids[:, -16:])
        return torch.zeros(*token_ids.shape, num_letters)

    for length in (16, 32, 300):
        assert letters.loss_at(no_idea, length) == pytest.approx(math.log(num_letters))
    assert all(torch.equal(asked[0], other) for other in asked)


def test_a_held_pair_gives_far_keys_the_angle_of_distance_31():
    query = key = torch.ones(1, 1, 40, 2)
    speeds = torch.tensor([0.1])
    scores = letters.held_scores(query, key, [0], speeds)[0, 0]
    angles = (torch.arange(40)[:, None] - torch.arange(40)).clamp(max=31) * 0.1
    expected = 2 * angles.cos() / 2**0.5
    torch.testing.assert_close(scores.tril(), expected.tril())


def test_each_digit_is_for_training_or_held_out_and_a_seed_makes_the_split():
    images, labels, known, unseen = split_digits(held_out=97, seed=1)
    assert len(unseen) == 97 and len(images) == len(labels)
    assert torch.cat([known, unseen]).sort().values.equal(torch.arange(1797))
    assert images.min() == 0 and images.max() == 1
    assert not split_digits(held_out=97, seed=2)[3].equal(unseen)


def test_the_arms_of_a_strand_pair_up():
    strands = hairpins(5)
    assert (strands + strands.flip(1))[:, :8].eq(3).all()


@pytest.mark.parametrize("num_letters", [None, 3])
def test_the_answer_is_the_last_digit_of_the_letter_asked_for(num_letters):
    lists = draw_pairs(50, 11, num_letters)
    for row, digits, asked, answer in zip(*(t.tolist() for t in lists)):
        assert dict(zip(row, digits))[asked] == answer
        assert num_letters is None or max(row) < num_letters
        assert num_letters is not None or len(set(row)) == 11


def test_more_pairs_than_letters_are_rejected():
    with pytest.raises(ValueError, match="at most 26 different letters, got 27"):
        draw_pairs(2, 27)


def test_two_questions_about_a_list_are_answered_by_its_pairs():
    for pairs, asked, answers in zip(*(t.tolist() for t in draw_two_way(20))):
        assert [asked[0], answers[0]] in pairs and [answers[1], asked[1]] in pairs


def test_a_text_with_resets_asks_for_the_last_digit_since_the_last_reset():
    for tokens, digits, asked, answer in zip(
        *(t.tolist() for t in draw_streams(99, 9))
    ):
        last = {}
        for token, digit in zip(tokens, digits):
            last = {} if token == RESET else last | {token: digit}
        assert last.get(asked, NONE) == answer


def test_the_alphabet_goes_on_after_an_interruption():
    for row in draw_alphabets(20).tolist():
        assert row[0] == BEGIN
        for before, last, new in zip(row[1:], row[2:], row[3:]):
            assert new == (before if last == AGAIN else (last + 1) % 26) or new == AGAIN


def test_one_french_sentence_has_one_translation_and_none_is_too_long():
    pairs = translation.translation_pairs(3000, seed=0)
    assert len(set(pairs)) == len(dict(pairs))
    lengths = {len(french.split()) for french, _ in pairs}
    assert {3, 24} <= lengths <= {*range(3, 25)}


def test_que_is_elided_before_un():
    french = " ".join(pair[0] for pair in translation.translation_pairs(3000, seed=0))
    assert "parce qu'un" in french
    assert "que un" not in french


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
        translation.RecurrentDecoder(english, 8, same_vector),
    )
    transformer = translation.Translator(
        translation.TransformerEncoder(french, 8, 2),
        translation.TransformerDecoder(english, 8, 2),
    )
    return [recurrent.eval(), transformer.eval()]


def test_a_batch_holds_every_word_and_ends_both_sides(pairs):
    for side, words in enumerate((FRENCH, ENGLISH)):
        for row, pair in zip(encode(pairs[100:103])[side].tolist(), pairs[100:103]):
            sentence = [words[i] for i in row[: row.index(END)]]
            assert " ".join(sentence) == pair[side]
            assert set(row[row.index(END) + 1 :]) <= {PAD}


def test_the_batches_hold_every_pair_once():
    targets = [row for _, target in translation.draw_batches() for row in target]
    drawn = translation.translation_pairs(32_000, seed=0)
    assert len(targets) == 32_000
    words = sum((target != PAD).sum().item() for target in targets)
    assert words == sum(map(translation.words_to_write, drawn))


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

    class KnowsAll:
        def encode(self, source):
            return ()

        def decoder(self, ids):
            column = target[:, ids.shape[1] - 1]
            logits = torch.nn.functional.one_hot(column, len(ENGLISH)).float()
            return logits[:, None].expand(-1, ids.shape[1], -1), None

    hits = translation.exact_matches(KnowsAll(), pairs[:3])
    assert hits.tolist() == [1, wrong_word is None, 1]


def test_each_word_is_hidden_from_the_decoder_only(models):
    source, target = encode([("un chat", "a cat")])
    for model in models:
        probs, weights = translation.hide_each_word(model, ("un chat", "a cat"))
        context, vector, mask = model.encode(source)
        for column in range(4):  # nothing, un, chat, <end>
            visible = mask & (torch.arange(3) != column - 1)
            given = shift_right(target), context, vector, visible
            logits, expected_weights = model.decoder(*given)
            expected = logits[0].softmax(dim=-1)[range(3), target[0]]
            torch.testing.assert_close(probs[:, column], expected)
            if not column:
                torch.testing.assert_close(weights, expected_weights[0])
