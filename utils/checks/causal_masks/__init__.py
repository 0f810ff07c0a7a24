"""Exercises of notebook 05: masks, masked softmax, dropout, causal attention."""

from utils.checks.causal_masks.causal_attention import causal_attention
from utils.checks.causal_masks.dropout import dropout
from utils.checks.causal_masks.masked_softmax import masked_softmax
from utils.checks.causal_masks.masks import mask, padding

EXERCISES = [mask, masked_softmax, padding, dropout, causal_attention]
