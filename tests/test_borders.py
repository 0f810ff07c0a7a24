"""What functions and layers say of an argument that they can't use.

Each row has a call and a part of the message of its ValueError or TypeError.
"""

import importlib
import re

import pytest
import torch
from torch import nn

from tests.test_model import gpt
from utils.attention import MultiHeadAttention
from utils.training import train

X, BATCH = torch.ones(3, 4), torch.ones(2, 3, 4)  # 3 tokens of width 4
IDS, PAIR = torch.tensor([[1, 2]]), (torch.tensor([[1]]), torch.tensor([[2]]))
PARTS, ONE, LINE = [BATCH] * 3, BATCH[None], nn.Linear(1, 1)
EMPTY = [ONE[..., :0]] * 2 + [
    ONE[:, 0],
    ONE[:, 0, :, :0],
    *[torch.ones(2, 4, n) for n in (0, 1)],
]
W, HALF, NUMBERS = torch.ones(6, 4), torch.ones(3, 2), torch.ones(2, 3)


def heads(**options):
    return MultiHeadAttention(4, 24, 13, 0.0, 6, **options)


def leaky(change):
    """Return a layer that computes this."""
    layer = nn.Identity()
    layer.forward = change
    return layer


def fit(batches, loss=lambda layer, x: layer(x).sum(), layer=LINE, **options):
    train(layer, batches, loss, steps=1, **options)


CALLS = r"""
attention.softmax(X[:0], 7) | an axis of scores (0, 4), got 7
attention.softmax(X, True) | an axis of scores (3, 4), got True
attention.softmax(X > 0) | scores as real numbers, got torch.bool
attention.attention_weights(X[:, :0]) | x of one feature or more, got (3, 0)
attention.causal_mask(10**9) | whose mask fits into memory, got 1000000000
attention.padding_mask([-1, 2], 4) | lengths from 0 to 4, got -1
attention.masked_softmax(X[0, 0]) | scores (..., S), got ()
attention.masked_softmax(X, X) | mask as torch.bool on cpu, got torch.float32 on cpu
attention.masked_softmax(X, X.T > 0) | a shape that broadcasts to (3, 4), got (4, 3)
attention.scaled_dot_product_attention(X, X, X, None, None) | dropout_p from 0 to 1, got
attention.scaled_dot_product_attention(X, X, X, None, 10**400) | finite dropout_p from 0
attention.scaled_dot_product_attention(X.long(), X, X) | query of floating-point numbers
attention.cross_attention(X, X, *[torch.eye(3)] * 3) | W_query (D = 4, d_k), got (3, 3)
attention.cross_attention(X, X, *[X.T] * 3, X[0] > 0) | source_mask (..., S = 3), got (4
attention.cross_attention(X, X, [[1]] * 4, X.T, X.T) | W_query as a tensor, got list
attention.attend_with_cache(X, X[:1], X[:1], (X, X)) | T = 3, d_k = 4), got (1, 4)
attention.attend_with_cache(X, X, X, (X,)) | keys and values, got 1 of them
attention.attend_with_cache(X, X, X, (X.T, X.T)) | d_k = 4), got (4, 3)
attention.attend_with_heads(ONE, *[ONE[:, :, :2]] * 2) | a key for each causal query
attention.attend_with_heads(*PARTS) | query (B, H, T, d_k), got (2, 3, 4)
attention.attend_with_heads(ONE, ONE, ONE[..., :2, :]) | value (B = 1, H_kv = 2, S = 3,
attention.padding_mask([2**70], 3) | whole numbers below 2**63, got [1180591620717411303
attention.SelfAttention(4, 2)(X.double()) | x as torch.float32 on cpu, got torch.float64
attention.SelfAttention(2.5, 2) | d_in to be a whole number of 1 or more, got 2.5
attention.CausalAttention(5, 2, 3, 0.0)(BATCH) | x (..., T, d_in = 5), got (2, 3, 4)
attention.CausalAttention(4, 2, 2, 0.0)(BATCH) | up to context_length = 2 tokens, got 3
heads()(BATCH, padding_mask=BATCH[..., 0]) | padding_mask as torch.bool on cpu, got
heads()(BATCH, padding_mask=X[0] > 0) | padding_mask (B = 2, S = 3), got (4,)
delta.DeltaAttention(4, 8, 3, 0.0, 2)(BATCH, X[0] > 0) | padding_mask (B = 2, S = 3)
clinic.patient(7)(X, X, X) | query (..., T, D = 16), got (3, 4)
clinic.patient(107)(BATCH) | x (B, T, D = 16), got (2, 3, 4)
attention.split_heads(torch.zeros(2, 5, 8), 3) | got width 8 and 3 heads
heads()(BATCH, cache=delta.DeltaState()) | cache as a KeyValueCache, got DeltaState
embeddings.embed(torch.tensor([0, -1]), W) | token ids from 0 to 5, got -1
embeddings.embed(torch.tensor([0]), X[0]) | table (V, D), got (4,)
embeddings.embed(torch.tensor([0], device="meta"), X) | token ids on cpu, got meta
embeddings.sinusoidal_positions(3, 5) | an even d_model, got 5
embeddings.sinusoidal_positions(3, 10**12) | d_model to be a whole number of 2 or more,
embeddings.Rotary(3, 4, 1e4, lambda speeds: speeds / 0 * 0) | frequencies from 0 to
embeddings.Rotary(3, 4, 1e4, lambda speeds: X[0]) | (half_width = 2), got (4,)
embeddings.Rotary(5, 2)(X, 0) | x (..., width = 2), got (3, 4)
embeddings.patchify(torch.zeros(1, 1, 6, 8), 3) | sides that 3 divides, got 6 and 8
embeddings.apply_rope(X, torch.arange(4)) | broadcasts to (3,), got (4,)
embeddings.rotate_pairs(X, HALF, HALF[:, :1]) | sin (... = (3,), half_width = 2), got
embeddings.rotate_pairs(X, HALF.long(), HALF) | cos of floating-point numbers, got torch
embeddings.TokenAndPositionEmbedding(5, None, 2)(IDS, "x") | position of 0 or more, got
latent.latent_keys_values(X, W, W) | latent (B, S, d_c), got (3, 4)
latent.absorbed_scores(ONE, ONE[0, :1], BATCH) | W_uk (H = 2, d_c = 4, d_k = 4), got
latent.absorbed_attention(*EMPTY) | queries of one feature or more, got (1, 2, 3, 0)
latent.LatentAttention(4, 24, 6, 0.0, 3)(BATCH, absorbed="x") | absorbed as True
delta.linear_attention(BATCH[:, :2], BATCH, BATCH) | key (... = (2,), T = 2, d_k = 4)
delta.linear_attention(*[BATCH[:, :0]] * 3) | one token or more, got (2, 0, 4)
delta.delta_rule(*PARTS, NUMBERS[..., None]) | beta (... = (2,), T = 3), got (2, 3, 1)
delta.gated_delta_rule(*PARTS, NUMBERS, -3 * NUMBERS) | gate from 0 to 1, got -3.0
delta.attend_in_chunks(*PARTS, NUMBERS, 5 * NUMBERS) | log_gate from -inf to 0, got 5.0
delta.attend_in_chunks(*PARTS, NUMBERS, state=X) | (... = (2,), d_k = 4, d_v = 4), got (
parallel.mlp_part(X, W, X[0], W.mT, X[0], -1, 3) | rank to be a whole number of 0 or mor
parallel.mlp_part(X[:, :3], W, W[:, 0], W.mT, X[0], 0, 2) | x (..., D = 4), got (3, 3)
parallel.mlp_part(X, W, W[:, 0], W.mT, X[0], 0, 4) | a count that divides U = 6 and a ra
parallel.merge_parts((X, X), (X, X)) | three tensors of each part, got (tensor
parallel.local_positions(4) | one of several processes, as `in_processes` starts them
parallel.local_positions(4, "no") | striped as True or False, got 'no'
parallel.ring_attention(X, X, X[:, :2]) | value (... = (), T = 3, d_k = 4), got (3, 2)
parallel.combine_partial_attention(BATCH, X, X) | maxima (... = (2,), T = 3), got (3, 4)
model.next_token_probs(X[0], top_k=6) | top_k from 1 to 4, got 6
model.next_token_probs(X[0], math.nan) | a finite temperature above 0, got nan
model.mean_loss(X * math.nan, torch.tensor([1, 2, 3])) | a finite largest logit, got nan
model.mean_loss(X, torch.tensor([1, 2, 3]), 1.0) | left_out as a whole number, got 1.0
model.mean_loss(X, torch.tensor([1, 2, 3]), 2**70) | left_out from -2**63, below 2**63
model.next_token_loss(gpt(), [IDS[:0]] * 2) | targets of one token or more, got (0, 2)
model.next_token_loss(gpt(), (IDS, IDS.mT)) | targets (... = (1, 2)), got (2, 1)
model.next_token_loss(gpt(), (IDS, IDS - 9)) | token ids from 0 to 52, got -8
model.generate(gpt(), IDS, 1, end_id=True) | end_id below 53, got True
model.generate(gpt(), torch.tensor([[53, *[1] * 13]]), 1) | from 0 to 52, got 53
model.generate(gpt(), IDS[:, :0], 1) | token ids (B, T), one or more each, got (1, 0)
gpt()(IDS[0]) | token ids (B, T), got (2,)
gpt()(IDS, "ab") | caches as `new_caches` returns them, got ab
gpt()(IDS, gpt().new_caches(5)[:1] * 2) | got 1 with lengths [0, 0]
gpt(causal=False) | causal=True, because a GPT predicts later tokens, got False
gpt(positions="none", rotary=True) | rotary=False with positions='none', got True
model.GPT(5, 0, 4, 2, 1, positions="rotary") | context_length to be a whole number of 1
model.GPT(5, 3, 6, 2, 1, positions="rotary") | an even head width with rotary=True, got
model.TransformerBlock(None, None, 4) | attention as a Module, got NoneType
model.TransformerBlock(nn.Linear(4, 1), nn.ReLU(), 4)(BATCH) | return (2, 3, 4), got (2,
llama.Llama(11, 5, d_inner=3) | missing 3 required positional arguments: 'd_model'
llama.SwiGLU(4)(HALF) | x (..., D = 4), got (3, 2)
data.sliding_windows([], 1, 1) | more than context_length = 1 token ids, got 0
data.sliding_windows([-1, -2], 1, 1) | token ids from 0 to inf, got -1
data.sliding_windows([2**63], 1, 1) | whole numbers below 2**63, got [9223372036854775
tokenizer.merge([1, 2], (None, []), 9) | ids as whole numbers, got None
tokenizer.merge("abab", (97, 98), 9) | ids as one sequence of whole numbers, got 'abab'
tokenizer.count_pairs({(1, 2): -3}) | occurrences to be a whole number of 0 or more, got
tokenizer.count_pairs({"abab": 2}) | ids of a word as a tuple, got str
tokenizer.train_bpe(chr(0xD800), 1) | a text that UTF-8 can encode, got '\ud800'
tokenizer.train_bpe(b"aa", 1) | text as a str, got bytes
tokenizer.train_bpe("a b", 1, re.compile("a")) | which loses a part of it
tokenizer.encode_bpe("aa", {}, "a") | a compiled pattern, got 'a'
tokenizer.encode_bpe("ab", {(256, 99): 257, (97, 98): 256}) | (256, 99) before its parts
tokenizer.encode_bpe("ab", {("a", "b"): 256}) | ('a', 'b') before its parts
tokenizer.decode_bpe([97], [(97, 98)]) | merges as a dict, got list
tokenizer.decode_bpe([256], {(97, 98): 300}) | ids of bytes or of merges, got 256
tokenizer.decode_bpe([2**70], {}) | whole numbers below 2**63, got [1180
experiments.leak_test(nn.Identity(), BATCH[:, :1]) | x of two tokens or more, got (2, 1,
experiments.leak_test(nn.Identity(), BATCH * math.nan) | x of finite numbers, got NaN
experiments.leak_test(leaky(lambda x: x.mean(1, keepdim=True)), BATCH) | outputs (B, T,
experiments.answer_loss(LINE, X) | batch as a Sequence, got Tensor
experiments.greedy_translate(lambda ids: X[0] * math.nan, 0, 1, 3) | largest logit
experiments.greedy_translate(lambda ids: X, 0, 1, 3) | logits (V,), got (3, 4)
experiments.greedy_translate(lambda ids: X[0], 0, "1", 3) | end_id to be a whole number
training.learning_rate(-5, 104, 1.0) | step to be a whole number of 0 or more, got -5
training.TrainingConfig(clip="1") | a finite clip above 0, got '1'
training.TrainingConfig(weight_decay=math.inf) | a finite weight_decay from 0, got inf
training.TrainingConfig(decline=2.0) | a finite decline from 0 to 1, got 2.0
training.TrainingConfig(metadata={"loss": math.nan}) | metadata as a dict of strings
fit([]) | one batch or more, got none
fit({"x": X}) | a list of batches, or a function from a number to a batch, got dict
fit([X], layer=nn.ReLU()) | a model with weights to train, got none
fit([X], None) | compute_loss as a Callable, got NoneType
"""


LIBRARY = "attention cache clinic data delta embeddings experiments latent llama model"
LIBRARY = f"{LIBRARY} parallel tokenizer training".split()
MODULES = ["math", "numpy", *(f"utils.{name}" for name in LIBRARY)]


@pytest.mark.parametrize("row", CALLS.strip().splitlines())
def test_what_cannot_be_used_is_named(row):
    call, message = row.split(" | ")
    modules = {name.split(".")[-1]: importlib.import_module(name) for name in MODULES}
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        eval(call, globals() | modules | {"gpt": gpt})
