"""Each test pins one sentence about `utils.training.translation`, the bench of 08."""

import pytest
import torch

from utils.training import translation
from utils.training.translation import END, PAD, START, Sentences, shifted


@pytest.fixture(scope="module")
def sentences():
    """Return the sentences of 08."""
    return Sentences()


@pytest.fixture(scope="module")
def models(sentences):
    """Return the three translators, untrained."""
    torch.manual_seed(0)
    french, english = len(sentences.french), len(sentences.english)

    def same(state, context, vector, mask):
        return vector, torch.zeros(mask.shape)

    recurrent = translation.Translator(
        translation.RecurrentEncoder(french, 8),
        translation.RecurrentDecoder(english, 8, same),
    )
    transformer = translation.Translator(
        translation.TransformerEncoder(french, 8, 2),
        translation.TransformerDecoder(english, 8, 2),
    )
    return [recurrent.eval(), transformer.eval()]


def test_a_batch_says_every_word_and_ends_both_sides(sentences):
    pairs = sentences.held_out[100:103]
    for side, words in enumerate((sentences.french, sentences.english)):
        for row, pair in zip(sentences.batch(pairs)[side].tolist(), pairs):
            said = [words[i] for i in row[: row.index(END)]]
            assert " ".join(said) == pair[side]
            assert set(row[row.index(END) + 1 :]) <= {PAD}


def test_the_batches_hold_every_pair_once(sentences):
    rows = [row for source, _ in sentences.batches() for row in source.tolist()]
    words = sum(len([i for i in row if i != PAD]) - 1 for row in rows)
    assert len(rows) == 32_000
    assert words == sum(translation.num_words(pair) for pair in sentences.pairs)


def test_a_target_is_shifted_behind_start():
    target = torch.tensor([[5, 6, END], [7, END, PAD]])
    assert shifted(target).tolist() == [[START, 5, 6], [START, 7, END]]


def test_what_a_decoder_says_does_not_depend_on_later_words(sentences, models):
    source, target = sentences.batch(sentences.held_out[:3])
    inputs = shifted(target)
    for model in models:
        whole = model(source, inputs)[0]
        first = model(source, inputs[:, :2])[0]
        torch.testing.assert_close(whole[:, :2], first)


def test_padding_behind_the_mask_moves_nothing(sentences, models):
    for model in models:
        assert translation.kept(model, sentences, masked=True) == 1
        _, _, before, after = translation.most_lost(model, sentences, masked=True)
        assert before - after < 1e-5


def test_a_translation_stops_before_end(sentences):
    target = sentences.batch(sentences.held_out[:3])[1]

    def knows(source, inputs, mask=None):
        at = inputs.shape[1] - 1
        column = target[:, min(at, target.shape[1] - 1)]
        logits = torch.nn.functional.one_hot(column, len(sentences.english)).float()
        return logits[:, None].expand(-1, inputs.shape[1], -1), None

    said = translation.translate(knows, sentences, target)
    assert said == [pair[1] for pair in sentences.held_out[:3]]


def test_the_word_that_loses_most_is_found_in_its_sentence(sentences, models):
    begun, word, before, after = translation.most_lost(models[1], sentences, False)
    pairs, source, longer, mask = translation.lengthened(sentences, masked=False)
    first = f"{begun} {word} ".lstrip()
    row = next(
        i for i, pair in enumerate(pairs) if f"{pair[1]} <end> ".startswith(first)
    )
    inputs = shifted(sentences.batch([pairs[row]])[1])[:, : len(begun.split()) + 1]
    for said, *given in (before, source[[row]], inputs), (after, longer[[row]], inputs):
        hidden = mask[[row]] if said == after else None
        probs = models[1](*given, hidden)[0][0, -1].softmax(dim=-1)
        torch.testing.assert_close(probs[sentences.english.index(word)].item(), said)
