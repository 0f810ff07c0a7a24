"""Each test pins one sentence about the benches of `utils.training`: letters (05, 07),
digits (11) and translation (08).
"""

import math

import pytest
import torch

from utils.attention import MultiHeadAttention
from utils.training import letters, translation
from utils.training.digits import digits
from utils.training.letters import LetterReader, loss_at, plain_scores, rotary_scores
from utils.training.translation import END, PAD, Sentences, shifted


@pytest.mark.parametrize("score", [plain_scores, rotary_scores])
def test_the_layer_of_a_reader_computes_what_the_layer_of_the_course_does(score):
    layer = MultiHeadAttention(32, 32, 32, 0.0, 4, rotary=score is rotary_scores)
    reader, x = LetterReader(score), torch.randn(2, 32, 32)
    reader.attention.load_state_dict(layer.state_dict())
    torch.testing.assert_close(reader.attention(x), layer(x))


def test_every_length_asks_for_the_same_letters():
    asked = []

    def notes(token_ids):
        asked.append(token_ids[:, -16:])
        return torch.zeros(*token_ids.shape, len(letters.story()[0]))

    losses = {round(loss_at(notes, length), 5) for length in (16, 32, 300)}
    assert losses == {round(math.log(len(letters.story()[0])), 5)}
    assert all(torch.equal(asked[0], other) for other in asked)


def test_each_digit_is_for_training_or_held_out_and_a_seed_makes_the_split():
    images, labels, known, unseen = digits(held_out=97, seed=1)
    assert len(unseen) == 97 and len(images) == len(labels)
    assert torch.cat([known, unseen]).sort().values.equal(torch.arange(1797))
    assert images.min() == 0 and images.max() == 1
    assert not digits(held_out=97, seed=2)[3].equal(unseen)


@pytest.fixture(scope="module")
def sentences():
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


def test_what_a_decoder_says_does_not_depend_on_later_words(sentences, models):
    source, target = sentences.batch(sentences.held_out[:3])
    inputs = shifted(target)
    for model in models:
        whole = model(source, inputs)[0]
        first = model(source, inputs[:, :2])[0]
        torch.testing.assert_close(whole[:, :2], first)


def test_padding_behind_the_mask_moves_nothing(sentences, models):
    source, target = sentences.batch(sentences.held_out[:3])
    longer = torch.nn.functional.pad(source, (0, 16), value=PAD)
    for model in models:
        alone, beside = (model(ids, shifted(target))[0] for ids in (source, longer))
        torch.testing.assert_close(alone, beside)


def test_a_translation_stops_before_end(sentences):
    target = sentences.batch(sentences.held_out[:3])[1]

    def knows(source, inputs, mask=None):
        at = inputs.shape[1] - 1
        column = target[:, min(at, target.shape[1] - 1)]
        logits = torch.nn.functional.one_hot(column, len(sentences.english)).float()
        return logits[:, None].expand(-1, inputs.shape[1], -1), None

    said = translation.translate(knows, sentences, target)
    assert said == [pair[1] for pair in sentences.held_out[:3]]


def test_a_curve_over_lengths_counts_every_sentence_once(sentences):
    lengths = torch.tensor([len(f.split()) for f, _ in sentences.held_out]).float()
    means = translation.by_length(sentences, lengths)
    sizes = translation.by_length(sentences, (lengths > 0).float())
    assert sizes == [1.0] * 7
    near = [lengths[(lengths - n).abs() < 2].mean().item() for n in translation.LENGTHS]
    assert means[:-1] == pytest.approx(near[:-1])
    assert means[-1] == pytest.approx(lengths[lengths > 20].mean().item())


def test_the_word_looked_at_most_is_hidden_from_the_decoder_alone(sentences, models):
    pair = "un chat", "a cat"
    (source, target), number = sentences.batch([pair]), sentences.english.index("cat")
    for model in models:
        french, *said = translation.without(model, sentences, pair, "cat")
        row = translation.alignment(model, sentences, pair)[1]
        assert french == ["un", "chat", "<end>"][row.argmax()]
        context, vector = model.encoder(source, source != PAD)
        for prob, mask in zip(said, (row >= 0, row < row.max())):
            given = shifted(target), context, vector, mask[None]
            probs = model.decoder(*given)[0].softmax(dim=-1)
            assert probs[0, 1, number].item() == pytest.approx(prob)
