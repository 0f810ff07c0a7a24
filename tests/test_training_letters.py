"""Each test pins one sentence about `utils.training.letters`, the bench of 05, 07."""

import math

import pytest
import torch
from torch import nn

from utils.attention import MultiHeadAttention
from utils.training import letters
from utils.training.letters import (
    LetterReader,
    compare_lengths,
    loss_at,
    loss_of_guessing,
    plain_scores,
    rotary_scores,
    train_reader,
)


@pytest.mark.parametrize("score", [plain_scores, rotary_scores])
def test_the_layer_of_a_reader_computes_what_the_layer_of_the_course_does(score):
    layer = MultiHeadAttention(32, 32, 32, 0.0, 4, rotary=score is rotary_scores)
    reader, x = LetterReader(score), torch.randn(2, 32, 32)
    reader.attention.load_state_dict(layer.state_dict())
    torch.testing.assert_close(reader.attention(x), layer(x))


def test_what_is_added_is_added_to_every_embedding():
    reader = LetterReader(added=lambda length: torch.ones(length, 32))
    ids = torch.arange(10).view(2, 5)
    before = reader(ids)
    reader.added = None
    with torch.no_grad():
        reader.tokens.weight += 1
    torch.testing.assert_close(before, reader(ids))


def test_every_length_asks_for_the_same_letters():
    asked = []

    def notes(token_ids):
        asked.append(token_ids[:, -16:])
        return torch.zeros(*token_ids.shape, len(letters.story()[0]))

    losses = {round(loss_at(notes, length), 5) for length in (16, 32, 300)}
    assert losses == {round(math.log(len(letters.story()[0])), 5)}
    assert all(torch.equal(asked[0], other) for other in asked)


def test_a_reader_that_cannot_read_a_length_gets_nan(capsys):
    class Table(nn.Embedding):
        def forward(self, length):
            return super().forward(torch.arange(length))

    losses = compare_lengths({"table": LetterReader(added=Table(32, 32))}, (32, 33))
    assert losses["table"][0] > 0 and math.isnan(losses["table"][1])
    assert capsys.readouterr().out.splitlines()[1].endswith("error")


def test_a_short_training_beats_guessing():
    torch.manual_seed(0)
    reader = train_reader(LetterReader(), length=16, steps=60, batch_size=16)
    assert loss_at(reader, 16) < loss_of_guessing() - 0.3
