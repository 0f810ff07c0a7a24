"""What functions and layers say of an argument that they can't use.

Each row has what the message of the ValueError or TypeError says, and a call.
"""

import math
import re

import pytest
import torch
from torch import nn

from tests.test_model import gpt
from utils import (
    attention,
    cache,
    clinic,
    data,
    delta,
    embeddings,
    experiments,
    files,
    latent,
    llama,
    model,
    parallel,
    tokenizer,
    training,
)

X, BATCH = torch.ones(3, 4), torch.ones(2, 3, 4)  # 3 tokens of width 4
PARTS, ONE, IDS = [BATCH] * 3, BATCH[None], torch.tensor([[1, 2]])
W, HALF, NUMBERS = torch.ones(6, 4), torch.ones(3, 2), torch.ones(2, 3)
SIZE, MANY = 2**31 - 1, ONE.expand(2**31 - 1, -1, -1, -1)  # the largest size
NONE, LINE = ONE[..., :0], nn.Linear(1, 1)  # vectors without a feature, and a layer


def heads(**options):
    return attention.MultiHeadAttention(4, 24, 13, 0.0, 6, **options)


def leaky(change):
    """Return a layer that computes this."""
    layer = nn.Identity()
    layer.forward = change
    return layer


def fit(batches, loss=lambda layer, x: layer(x).sum(), layer=LINE, **options):
    training.train(layer, batches, loss, steps=1, **options)


# fmt: off
CALLS = {
    "dim as an axis of scores (0, 4), got 7": lambda: attention.softmax(X[:0], 7),
    "dim as an axis of scores (3, 4), got True": lambda: attention.softmax(X, True),
    "scores as real numbers, got torch.bool": lambda: attention.softmax(X > 0),
    "scores as a dense tensor, got torch.sparse_coo": lambda: attention.softmax(X.to_sparse()),
    "a finite largest score, got inf": lambda: attention.softmax(X * math.inf),
    "x of one feature or more, got (3, 0)": lambda: attention.attention_weights(X[:, :0]),
    "a shape that fits into memory, got (1000000000, 1000000000)": lambda: attention.causal_mask(10**9),
    "a shape that fits into memory, got (2147483647, 2147483647, 2, 3, 4)": lambda: attention.repeat_kv(MANY, SIZE),
    "a shape that fits into memory, got (2147483647, 2, 2147483647, 4)": lambda: cache.KeyValueCache(SIZE).append(MANY, MANY),
    "a shape that fits into memory, got (2147483647, 2147483646)": lambda: embeddings.Rotary(SIZE, SIZE - 1),
    "a shape that fits into memory, got (1, 2147483647, 2147483647)": lambda: embeddings.alibi_bias(1, SIZE),
    "lengths from 0 to 4, got -1": lambda: attention.padding_mask([-1, 2], 4),
    "lengths as one sequence of whole numbers, got [True, 2]": lambda: attention.padding_mask([True, 2], 3),
    "scores (..., S), got ()": lambda: attention.masked_softmax(X[0, 0]),
    "mask as torch.bool on cpu, got torch.float32 on cpu": lambda: attention.masked_softmax(X, X),
    "mask of a shape that broadcasts to (3, 4), got (4, 3)": lambda: attention.masked_softmax(X, X.T > 0),
    "a finite dropout_p from 0 to 1, got None": lambda: attention.scaled_dot_product_attention(X, X, X, None, None),
    "a finite dropout_p from 0 to 1, got 1000": lambda: attention.scaled_dot_product_attention(X, X, X, None, 10**400),
    "query of floating-point numbers, got torch.int64": lambda: attention.scaled_dot_product_attention(X.long(), X, X),
    "W_query (D = 4, d_k), got (3, 3)": lambda: attention.cross_attention(X, X, *[torch.eye(3)] * 3),
    "source_mask (..., S = 3), got (4,)": lambda: attention.cross_attention(X, X, *[X.T] * 3, X[0] > 0),
    "W_query as a tensor, got list": lambda: attention.cross_attention(X, X, [[1]] * 4, X.T, X.T),
    "key (... = (), T = 3, d_k = 4), got (1, 4)": lambda: attention.attend_with_cache(X, X[:1], X[:1], (X, X)),
    "a cache of keys and values, got 1 of them": lambda: attention.attend_with_cache(X, X, X, (X,)),
    "cached keys (... = (), S, d_k = 4), got (4, 3)": lambda: attention.attend_with_cache(X, X, X, (X.T, X.T)),
    "a key for each causal query, got (1, 2, 3, 4) and (1, 2, 2, 4)": lambda: attention.attend_with_heads(ONE, *[ONE[:, :, :2]] * 2),
    "need_weights as True or False, got 'no'": lambda: attention.attend_with_heads(ONE, ONE, ONE, need_weights="no"),
    "a finite dropout_p from 0 to 1, got -1": lambda: attention.attend_with_heads(ONE, ONE, ONE, dropout_p=-1),
    "query (B, H, T, d_k), got (2, 3, 4)": lambda: attention.attend_with_heads(*PARTS),
    "value (B = 1, H_kv = 2, S = 3, d_v), got (1, 2, 2, 4)": lambda: attention.attend_with_heads(ONE, ONE, ONE[..., :2, :]),
    "lengths as one sequence of whole numbers below 2**63, got [1180591620717411303424]": lambda: attention.padding_mask([2**70], 3),
    "x as torch.float32 on cpu, got torch.float64 on cpu": lambda: attention.SelfAttention(4, 2)(X.double()),
    "d_in to be a whole number of 1 or more, got 2.5": lambda: attention.SelfAttention(2.5, 2),
    "x (..., T, d_in = 5), got (2, 3, 4)": lambda: attention.CausalAttention(5, 2, 3, 0.0)(BATCH),
    "up to context_length = 2 tokens, got 3": lambda: attention.CausalAttention(4, 2, 2, 0.0)(BATCH),
    "padding_mask as torch.bool on cpu, got torch.float32 on cpu": lambda: heads()(BATCH, padding_mask=BATCH[..., 0]),
    "padding_mask (B = 2, S = 3), got (4,)": lambda: heads()(BATCH, padding_mask=X[0] > 0),
    "padding_mask (B = 2, S = 3), got (3,)": lambda: delta.DeltaAttention(4, 8, 3, 0.0, 2)(BATCH, X[:, 0] > 0),
    "query (..., T, D = 16), got (3, 4)": lambda: clinic.patient(7)(X, X, X),
    "x (B, T, D = 16), got (2, 3, 4)": lambda: clinic.patient(107)(BATCH),
    "the model has the weights of another model: expected": lambda: clinic.examine_model(gpt()),
    "got width 8 and 3 heads": lambda: attention.split_heads(torch.zeros(2, 5, 8), 3),
    "cache as a KeyValueCache, got DeltaState": lambda: heads()(BATCH, cache=delta.DeltaState()),
    "token ids from 0 to 5, got -1": lambda: embeddings.embed(torch.tensor([0, -1]), W),
    "table (V, D), got (4,)": lambda: embeddings.embed(torch.tensor([0]), X[0]),
    "token ids on cpu, got meta": lambda: embeddings.embed(torch.tensor([0], device="meta"), X),
    "an even d_model, got 5": lambda: embeddings.sinusoidal_positions(3, 5),
    "d_model to be a whole number of 2 or more, below 2**31, got 1000000000000": lambda: embeddings.sinusoidal_positions(3, 10**12),
    "rescaled frequencies from 0 to 1.7976931348623157e+308, got nan": lambda: embeddings.Rotary(3, 4, 1e4, lambda speeds: speeds / 0 * 0),
    "frequencies (half_width = 2), got (4,)": lambda: embeddings.Rotary(3, 4, 1e4, lambda speeds: X[0]),
    "x (..., width = 2), got (3, 4)": lambda: embeddings.Rotary(5, 2)(X, 0),
    "sides that 3 divides, got 6 and 8": lambda: embeddings.patchify(torch.zeros(1, 1, 6, 8), 3),
    "positions of a shape that broadcasts to (3,), got (4,)": lambda: embeddings.apply_rope(X, torch.arange(4)),
    "finite angles, of positions times frequencies, got nan": lambda: embeddings.apply_rope(X, X[:, 0] * math.nan),
    "finite angles, of positions times frequencies, got inf": lambda: embeddings.rotary_tables(torch.arange(3), 64, 1e-320),
    "sin (... = (3,), half_width = 2), got (3, 1)": lambda: embeddings.rotate_pairs(X, HALF, HALF[:, :1]),
    "cos of floating-point numbers, got torch.int64": lambda: embeddings.rotate_pairs(X, HALF.long(), HALF),
    "start as a first position of 0 or more, got 'x'": lambda: embeddings.TokenAndPositionEmbedding(5, None, 2)(IDS, "x"),
    "latent (B, S, d_c), got (3, 4)": lambda: latent.latent_keys_values(X, W, W),
    "W_uk (H = 2, d_c = 4, d_k = 4), got (2, 3, 4)": lambda: latent.absorbed_scores(ONE, ONE[0, :1], BATCH),
    "queries of one feature or more, got (1, 2, 3, 0)": lambda: latent.absorbed_attention(NONE, NONE, ONE[:, 0], NONE[:, 0], BATCH.mT[..., :0], BATCH.mT),
    "absorbed as True or False, got 'x'": lambda: latent.LatentAttention(4, 24, 6, 0.0, 3)(BATCH, absorbed="x"),
    "key (... = (2,), T = 2, d_k = 4), got (2, 3, 4)": lambda: delta.linear_attention(BATCH[:, :2], BATCH, BATCH),
    "one token or more, got (2, 0, 4)": lambda: delta.linear_attention(*[BATCH[:, :0]] * 3),
    "beta (... = (2,), T = 3), got (2, 3, 1)": lambda: delta.delta_rule(*PARTS, NUMBERS[..., None]),
    "gate from 0 to 1, got -3.0": lambda: delta.gated_delta_rule(*PARTS, NUMBERS, -3 * NUMBERS),
    "log_gate from -inf to 0, got 5.0": lambda: delta.attend_in_chunks(*PARTS, NUMBERS, 5 * NUMBERS),
    "state (... = (2,), d_k = 4, d_v = 4), got (3, 4)": lambda: delta.attend_in_chunks(*PARTS, NUMBERS, state=X),
    "a finite state, got nan": lambda: delta.attend_in_chunks(*PARTS, NUMBERS, state=X.new_full((2, 4, 4), math.nan)),
    "rank to be a whole number of 0 or more, got -1": lambda: parallel.mlp_part(X, W, X[0], W.mT, X[0], -1, 3),
    "x (..., D = 4), got (3, 3)": lambda: parallel.mlp_part(X[:, :3], W, W[:, 0], W.mT, X[0], 0, 2),
    "a count that divides U = 6 and a rank below it, got 4 and 0": lambda: parallel.mlp_part(X, W, W[:, 0], W.mT, X[0], 0, 4),
    "three tensors of each part, got (tensor": lambda: parallel.merge_parts((X, X), (X, X)),
    "one of several processes, as `in_processes` starts them": lambda: parallel.local_positions(4),
    "striped as True or False, got 'no'": lambda: parallel.local_positions(4, "no"),
    "value (... = (), T = 3, d_k = 4), got (3, 2)": lambda: parallel.ring_attention(X, X, X[:, :2]),
    "maxima (... = (2,), T = 3), got (3, 4)": lambda: parallel.combine_partial_attention(BATCH, X, X),
    "maxima below inf, got inf": lambda: parallel.combine_partial_attention(BATCH, NUMBERS * math.inf, NUMBERS),
    "top_k from 1 to 4, got 6": lambda: model.next_token_probs(X[0], top_k=6),
    "a finite temperature above 0, got nan": lambda: model.next_token_probs(X[0], math.nan),
    "a finite largest logit, got nan": lambda: model.mean_loss(X * math.nan, torch.tensor([1, 2, 3])),
    "left_out as a whole number, got 1.0": lambda: model.mean_loss(X, torch.tensor([1, 2, 3]), 1.0),
    "left_out from -2**63, below 2**63, got 1180591620717411303424": lambda: model.mean_loss(X, torch.tensor([1, 2, 3]), 2**70),
    "targets of one token or more, got (0, 2)": lambda: model.next_token_loss(gpt(), [IDS[:0]] * 2),
    "targets (... = (1, 2)), got (2, 1)": lambda: model.next_token_loss(gpt(), (IDS, IDS.mT)),
    "token ids from 0 to 52, got -8": lambda: model.next_token_loss(gpt(), (IDS, IDS - 9)),
    "end_id below 53, got True": lambda: model.generate(gpt(), IDS, 1, end_id=True),
    "token ids from 0 to 52, got 53": lambda: model.generate(gpt(), torch.tensor([[53, *[1] * 13]]), 1),
    "token ids (B, T), one or more each, got (1, 0)": lambda: model.generate(gpt(), IDS[:, :0], 1),
    "token ids (B, T), got (2,)": lambda: gpt()(IDS[0]),
    "caches as `new_caches` returns them, got ab": lambda: gpt()(IDS, "ab"),
    "got 1 with lengths [0, 0]": lambda: gpt()(IDS, gpt().new_caches(5)[:1] * 2),
    "causal=True, because a GPT predicts later tokens, got False": lambda: gpt(causal=False),
    "attention with an `out_proj`, got Identity()": lambda: gpt(attention=nn.Identity),
    "rotary=False with positions='none', got True": lambda: gpt(positions="none", rotary=True),
    "context_length to be a whole number of 1 or more, got 0": lambda: model.GPT(5, 0, 4, 2, 1, positions="rotary"),
    "an even head width with rotary=True, got 3": lambda: model.GPT(5, 3, 6, 2, 1, positions="rotary"),
    "attention as a Module, got NoneType": lambda: model.TransformerBlock(None, None, 4),
    "attention to return (2, 3, 4), got (2, 3, 1)": lambda: model.TransformerBlock(nn.Linear(4, 1), nn.ReLU(), 4)(BATCH),
    "missing 3 required positional arguments: 'd_model'": lambda: llama.Llama(11, 5, d_inner=3),
    "no positions, a Llama's are rotary, got ['positions']": lambda: llama.Llama(11, 5, 8, 2, 1, d_inner=12, positions="none"),
    "x (..., D = 4), got (3, 2)": lambda: llama.SwiGLU(4)(HALF),
    "more than context_length = 1 token ids, got 0": lambda: data.sliding_windows([], 1, 1),
    "token ids from 0 to inf, got -1": lambda: data.sliding_windows([-1, -2], 1, 1),
    "token ids as one sequence of whole numbers, got [1, True, 2]": lambda: data.sliding_windows([1, True, 2], 1, 1),
    "whole numbers below 2**63, got [9223372036854775808]": lambda: data.sliding_windows([2**63], 1, 1),
    "ids as whole numbers, got None": lambda: tokenizer.merge([1, 2], (None, []), 9),
    "ids as one sequence of whole numbers, got 'abab'": lambda: tokenizer.merge("abab", (97, 98), 9),
    "occurrences to be a whole number of 0 or more, got -3": lambda: tokenizer.count_pairs({(1, 2): -3}),
    "ids of a word as a tuple, got str": lambda: tokenizer.count_pairs({"abab": 2}),
    "a text that UTF-8 can encode, got '\\ud800'": lambda: tokenizer.train_bpe(chr(0xD800), 1),
    "a compiled pattern of texts, got re.compile(b'a')": lambda: tokenizer.train_bpe("a b", 1, re.compile(b"a")),
    "text as a str, got bytes": lambda: tokenizer.train_bpe(b"aa", 1),
    "which loses a part of it": lambda: tokenizer.train_bpe("a b", 1, re.compile("a")),
    "a compiled pattern of texts, got 'a'": lambda: tokenizer.encode_bpe("aa", {}, "a"),
    "merges in the order learned, got (256, 99) before its parts": lambda: tokenizer.encode_bpe("ab", {(256, 99): 257, (97, 98): 256}),
    "merges in the order learned, got ('a', 'b') before its parts": lambda: tokenizer.encode_bpe("ab", {("a", "b"): 256}),
    "merges as a dict, got list": lambda: tokenizer.decode_bpe([97], [(97, 98)]),
    "ids of bytes or of merges, got 256": lambda: tokenizer.decode_bpe([256], {(97, 98): 300}),
    "ids of one text as one sequence of whole numbers below 2**63, got [1180591620717411303424]": lambda: tokenizer.decode_bpe([2**70], {}),
    "x of two tokens or more, got (2, 1, 4)": lambda: experiments.leak_test(nn.Identity(), BATCH[:, :1]),
    "x with tokens that differ, or no leak shows, got equal ones": lambda: experiments.leak_test(nn.Identity(), BATCH),
    "x of finite numbers, got nan": lambda: experiments.leak_test(nn.Identity(), BATCH * math.nan),
    "outputs (B, T, …) with (2, 3), got (2, 1, 4)": lambda: experiments.leak_test(leaky(lambda x: x.mean(1, keepdim=True)), BATCH.cumsum(1)),
    "batch as a Sequence, got Tensor": lambda: experiments.answer_loss(LINE, X),
    "a finite largest logit, got inf": lambda: experiments.greedy_translate(lambda ids: X[0] * math.inf, 0, 1, 3),
    "logits (V,), got (3, 4)": lambda: experiments.greedy_translate(lambda ids: X, 0, 1, 3),
    "end_id to be a whole number of 0 or more, got '1'": lambda: experiments.greedy_translate(lambda ids: X[0], 0, "1", 3),
    "step to be a whole number of 0 or more, got -5": lambda: training.learning_rate(-5, 104, 1.0),
    "a finite clip above 0, got '1'": lambda: training.TrainingConfig(clip="1"),
    "a finite weight_decay from 0, got inf": lambda: training.TrainingConfig(weight_decay=math.inf),
    "a finite decline from 0 to 1, got 2.0": lambda: training.TrainingConfig(decline=2.0),
    "metadata as a dict of strings": lambda: training.TrainingConfig(metadata={"loss": math.nan}),
    "one batch or more, got none": lambda: fit([]),
    "a list of batches, or a function from a number to a batch, got dict": lambda: fit({"x": X}),
    "a model with weights to train, got none": lambda: fit([X], layer=nn.ReLU()),
    "compute_loss as a Callable, got NoneType": lambda: fit([X], None),
    "content as bytes, got str": lambda: files.write_atomically("missing/file", "text"),
}
# fmt: on


@pytest.mark.parametrize("message", CALLS)
def test_what_cannot_be_used_is_named(message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        CALLS[message]()
