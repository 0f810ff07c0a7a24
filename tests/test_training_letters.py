"""Each test pins one sentence about `utils.training.letters`, the bench of 05, 07."""

import math

import pytest
import torch

from utils.attention import MultiHeadAttention
from utils.training import letters
from utils.training.letters import LetterReader, loss_at, plain_scores, rotary_scores


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
