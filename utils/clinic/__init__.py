"""The clinic: broken attention layers, to be diagnosed by their behaviour alone.

A patient is an attention layer in which a step or two go wrong. Its code stays out of
sight: you run it and compare it with its healthy twin, a layer with the same weights
and no wrong step. Everything runs on the CPU.

Shapes: B batch, T tokens, D = H * d_k width, H heads, d_k head width.
"""

from utils.clinic.diagnosis import diagnose
from utils.clinic.instruments import (
    bisect,
    one_token,
    permute_tokens,
    replace_tokens,
    row_sums,
    scale_scores,
)
from utils.clinic.models import broken_model, examine_model
from utils.clinic.patients import patient, suspects, twin
from utils.clinic.training import lowest_loss, train_on_words
