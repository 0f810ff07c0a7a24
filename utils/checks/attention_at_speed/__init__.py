"""Exercises of notebook 10: online softmax, shared key-value heads, the cached step."""

from utils.checks.attention_at_speed.attend_with_cache import attend_with_cache
from utils.checks.attention_at_speed.online_softmax import online_softmax_attention
from utils.checks.attention_at_speed.repeat_kv import repeat_kv

EXERCISES = [online_softmax_attention, repeat_kv, attend_with_cache]
