"""Exercises of notebook 09: the block of a GPT, and how its next token is drawn."""

from utils.checks.tiny_gpt.block import transformer_block
from utils.checks.tiny_gpt.next_token import next_token_probs, top_p_probs

EXERCISES = [transformer_block, next_token_probs, top_p_probs]
