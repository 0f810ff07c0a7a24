"""Each test pins one sentence about `utils.data`."""

import pytest

from utils.data import (
    create_dataloader,
    draw_pairs,
    draw_words_back,
    load_text,
    pronoun_sentences,
    translation_pairs,
)
from utils.tokenizer import load_tokenizer


def test_the_default_text_is_the_story():
    assert load_text() == load_text("story")


def test_batches_hold_the_tokens_of_the_text_in_order():
    loader = create_dataloader(load_text(), 8, 4, 4, shuffle=False)
    inputs, targets = next(iter(loader))
    ids = load_tokenizer().encode(load_text())
    assert inputs.shape == targets.shape == (8, 4)
    assert inputs.flatten().tolist() == ids[:32]
    assert targets.flatten().tolist() == ids[1:33]


def test_one_french_sentence_has_one_translation():
    pairs = translation_pairs(3000, seed=0)
    assert len(set(pairs)) == len(dict(pairs))


NOUNS = set(
    "animal cat dog horse fox child bus truck tram boat "
    "street river bridge tunnel field garden".split()
)


def scene(words, pronoun, referent):
    """Return the words that matter: the two nouns and what is said of one."""
    return frozenset(NOUNS & {*words} | {words[pronoun + 3]})


def test_a_pronoun_sentence_marks_the_pronoun_and_its_noun():
    for words, pronoun, referent in pronoun_sentences(300, seed=3):
        assert words[pronoun : pronoun + 3] == ["it", "was", "too"]
        assert words[referent] in NOUNS
        assert sum(word in NOUNS for word in words) == 2


def test_held_out_scenes_never_occur_in_training():
    seen = {scene(*s) for s in pronoun_sentences(5000)}
    held_out = {scene(*s) for s in pronoun_sentences(1000, held_out=True)}
    assert not seen & held_out
    for quality in ("tired", "wide"):
        assert {"animal", "street", quality} in held_out


def test_neither_place_nor_noun_tells_what_the_pronoun_stands_for():
    sentences = pronoun_sentences(5000)
    first = [
        referent == min(i for i, word in enumerate(words) if word in NOUNS)
        for words, _, referent in sentences
    ]
    assert 0.45 < sum(first) / len(first) < 0.55
    for noun in ("animal", "bus", "street"):
        chosen = [w[r] == noun for w, _, r in sentences if noun in w]
        assert 0.4 < sum(chosen) / len(chosen) < 0.6


def test_the_answers_are_the_words_before_and_nothing_where_one_of_them_lacks():
    words, answers = draw_words_back(3, num_back=2, num_words=7)
    for row, wanted in zip(words.tolist(), answers.tolist()):
        assert wanted[:2] == [[-100, -100]] * 2
        assert wanted[2:] == [[row[i - 1], row[i - 2]] for i in range(2, 7)]


@pytest.mark.parametrize("num_back", [0, 7])
def test_a_sentence_in_which_no_word_has_all_answers_is_refused(num_back):
    with pytest.raises(ValueError, match=f"from 1 to 6, got {num_back}"):
        draw_words_back(3, num_back, num_words=7)


@pytest.mark.parametrize("num_letters", [None, 3])
def test_the_answer_is_the_last_digit_of_the_letter_asked_for(num_letters):
    lists = draw_pairs(50, 11, num_letters)
    for letters, digits, asked, answer in zip(*(t.tolist() for t in lists)):
        assert dict(zip(letters, digits))[asked] == answer
        assert num_letters is None or max(letters) < num_letters
        assert num_letters is not None or len(set(letters)) == 11


def test_more_pairs_than_letters_are_named():
    with pytest.raises(ValueError, match="at most 26 different letters, got 27"):
        draw_pairs(2, 27)
