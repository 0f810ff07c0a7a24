"""What functions and layers say of an argument that they can't use.

Each row has what the message of the ValueError or TypeError says, and a call.
"""

import json
import math
import re
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from tests.test_model import gpt
from utils import (
    attention,
    checkpoints,
    clinic,
    data,
    delta,
    embeddings,
    experiments,
    latent,
    llama,
    model,
    pages,
    parallel,
    plots,
    tokenizer,
    training,
)
from utils.checks import check, solution
from utils.plots import chart

X, BATCH = torch.ones(3, 4), torch.ones(2, 3, 4)  # 3 tokens of width 4
PARTS, ONE, IDS = [BATCH] * 3, BATCH[None], torch.tensor([[1, 2]])
W, HALF, NUMBERS = torch.ones(6, 4), torch.ones(3, 2), torch.ones(2, 3)
NONE, LINE = ONE[..., :0], nn.Linear(1, 1)  # vectors without a feature, and a layer
HEADS = attention.MultiHeadAttention(4, 24, 13, 0.0, 6)
HURT = nn.PReLU(1, math.nan)  # a layer with a weight of NaN
PICTURE, AXES = plots.Picture(), {"xlabel": "x", "ylabel": "y", "title": "t"}

# fmt: off
CALLS = [
    ("scores as real numbers, got torch.bool", lambda: attention.softmax(X > 0)),
    ("a finite largest score, got inf", lambda: attention.softmax(X * math.inf)),
    ("lengths as whole numbers, got True", lambda: attention.padding_mask([True, 2], 3)),
    ("mask as torch.bool on cpu, got torch.float32 on cpu", lambda: attention.masked_softmax(X, X)),
    ("mask of a shape that broadcasts to (3, 4), got (4, 3)", lambda: attention.masked_softmax(X, X.T > 0)),
    ("a finite dropout_p from 0 to 1, got 1000", lambda: attention.scaled_dot_product_attention(X, X, X, None, 10**400)),
    ("query of floating-point numbers, got torch.int64", lambda: attention.scaled_dot_product_attention(X.long(), X, X)),
    ("a finite largest score, got inf", lambda: attention.scaled_dot_product_attention(*[1e30 * X] * 3)),
    ("a finite largest score, got inf", lambda: attention.attend_with_cache(*[1e30 * X] * 3, None)),
    ("maxima below inf, and no NaN, got inf", lambda: parallel.partial_attention(*[1e30 * X] * 3)),
    ("source_mask of a shape that broadcasts to (3,), got (7, 3)", lambda: attention.cross_attention(X, X, *[X.T] * 3, torch.ones(7, 3) > 0)),
    ("W_query (D = 4, d_k), got (3, 3)", lambda: attention.cross_attention(X, X, *[torch.eye(3)] * 3)),
    ("W_query as a tensor, got list", lambda: attention.cross_attention(X, X, [[1]] * 4, X.T, X.T)),
    ("key (... = (), T = 3, d_k = 4), got (1, 4)", lambda: attention.attend_with_cache(X, X[:1], X[:1], (X, X))),
    ("a key for each causal query, got (1, 2, 3, 4) and (1, 2, 2, 4)", lambda: attention.attend_with_heads(ONE, *[ONE[:, :, :2]] * 2)),
    ("query (B, H, T, d_k), got (2, 3, 4)", lambda: attention.attend_with_heads(*PARTS)),
    ("causal=True with a window, got False", lambda: attention.attend_with_heads(ONE, ONE, ONE, causal=False, window=1)),
    ("heads that num_kv_heads divides, got 0 and 2", lambda: attention.attend_with_heads(ONE[:, :0], ONE, ONE)),
    ("x as torch.float32 on cpu, got torch.float64 on cpu", lambda: attention.SelfAttention(4, 2)(X.double())),
    ("d_in to be a whole number of 1 or more, got 2.5", lambda: attention.SelfAttention(2.5, 2)),
    ("x (..., T, d_in = 5), got (2, 3, 4)", lambda: attention.CausalAttention(5, 2, 3, 0.0)(BATCH)),
    ("up to context_length = 2 tokens, got 3", lambda: attention.CausalAttention(4, 2, 2, 0.0)(BATCH)),
    ("padding_mask (B = 2, S = 3), got (4,)", lambda: HEADS(BATCH, padding_mask=X[0] > 0)),
    ("query (..., T, D = 16), got (3, 4)", lambda: clinic.patient(7)(X, X, X)),
    ("the model has the weights of another model: expected", lambda: clinic.examine_model(gpt())),
    ("got width 8 and 3 heads", lambda: attention.split_heads(torch.zeros(2, 5, 8), 3)),
    ("for this layer, got replace_tokens", lambda: clinic.replace_tokens(clinic.patient(7))),
    ("no options of scale_scores, got title", lambda: clinic.scale_scores(clinic.patient(7), title="t")),
    ("cache as a KeyValueCache, got DeltaState", lambda: HEADS(BATCH, cache=delta.DeltaState())),
    ("token ids from 0 to 5, got -1", lambda: embeddings.embed(torch.tensor([0, -1]), W)),
    ("passed as True or False, got 'no'", lambda: solution("4.1", passed="no")),
    ("record as True or False, got 'no'", lambda: check("2.1", embeddings.embed, record="no")),
    ("an even d_model, got 5", lambda: embeddings.sinusoidal_positions(3, 5)),
    ("d_model to be a whole number of 2 or more, below 2**31, got 1000000000000", lambda: embeddings.sinusoidal_positions(3, 10**12)),
    ("finite frequencies, got nan", lambda: embeddings.Rotary(3, 4, 1e4, lambda speeds: speeds / 0 * 0)),
    ("sides that 3 divides, got 6 and 8", lambda: embeddings.patchify(torch.zeros(1, 1, 6, 8), 3)),
    ("positions of a shape that broadcasts to (3,), got (4,)", lambda: embeddings.apply_rope(X, torch.arange(4))),
    ("angles from -9007199254740992 to 9007199254740992, got nan", lambda: embeddings.apply_rope(X, X[:, 0] * math.nan)),
    ("sin (..., half = 2), got (3, 1)", lambda: embeddings.rotate_pairs(X, HALF, HALF[:, :1])),
    ("start to be a whole number of 0 or more, got 'x'", lambda: embeddings.TokenAndPositionEmbedding(5, None, 2)(IDS, "x")),
    ("latent (B, S, d_c), got (3, 4)", lambda: latent.latent_keys_values(X, W, W)),
    ("W_uk (H = 2, d_c = 4, d_k = 4), got (2, 3, 4)", lambda: latent.absorbed_scores(ONE, ONE[0, :1], BATCH)),
    ("key (... = (2,), T = 2, d_k = 4), got (2, 3, 4)", lambda: delta.linear_attention(BATCH[:, :2], BATCH, BATCH)),
    ("one token or more, got (2, 0, 4)", lambda: delta.linear_attention(*[BATCH[:, :0]] * 3)),
    ("beta (... = (2,), T = 3), got (2, 3, 1)", lambda: delta.delta_rule(*PARTS, NUMBERS[..., None])),
    ("gate from 0 to 1, got -3.0", lambda: delta.gated_delta_rule(*PARTS, NUMBERS, -3 * NUMBERS)),
    ("log_gate from -inf to 0, got 5.0", lambda: delta.attend_in_chunks(*PARTS, NUMBERS, 5 * NUMBERS)),
    ("state (... = (2,), d_k = 4, d_v = 4), got (3, 4)", lambda: delta.attend_in_chunks(*PARTS, NUMBERS, state=X)),
    ("a finite state, got nan", lambda: delta.attend_in_chunks(*PARTS, NUMBERS, state=X.new_full((2, 4, 4), math.nan))),
    ("x (..., D = 4), got (3, 3)", lambda: parallel.mlp_part(X[:, :3], W, W[:, 0], W.mT, X[0], 0, 2)),
    ("a count that divides U = 6 and a rank below it, got 4 and 0", lambda: parallel.mlp_part(X, W, W[:, 0], W.mT, X[0], 0, 4)),
    ("one of several processes, as `in_processes` starts them", lambda: parallel.local_positions(4)),
    ("value (... = (), T = 3, d_k = 4), got (3, 2)", lambda: parallel.ring_attention(X, X, X[:, :2])),
    ("positions as a tensor, got list", lambda: parallel.ring_attention(X, X, X, [0])),
    ("maxima (... = (2,), T = 3), got (3, 4)", lambda: parallel.combine_partial_attention(BATCH, X, X)),
    ("maxima below inf, and no NaN, got inf", lambda: parallel.combine_partial_attention(BATCH, NUMBERS * math.inf, NUMBERS)),
    ("finite sums in torch.float32, got inf", lambda: parallel.combine_partial_attention(3e38 * BATCH, NUMBERS, NUMBERS)),
    ("a finite temperature above 0, got nan", lambda: model.next_token_probs(X[0], math.nan)),
    ("a finite temperature above 0, got Fraction(1, 2)", lambda: model.next_token_probs(X[0], Fraction(1, 2))),
    ("a finite largest logit, got nan", lambda: model.mean_loss(X * math.nan, torch.tensor([1, 2, 3]))),
    ("left_out as a whole number, got 1.0", lambda: model.mean_loss(X, torch.tensor([1, 2, 3]), 1.0)),
    ("targets of one token or more, got (0, 2)", lambda: model.next_token_loss(gpt(), [IDS[:0]] * 2)),
    ("targets (... = (1, 2)), got (2, 1)", lambda: model.next_token_loss(gpt(), (IDS, IDS.mT))),
    ("token ids from 0 to 52, got -8", lambda: model.next_token_loss(gpt(), (IDS, IDS - 9))),
    ("end_id below 53, got True", lambda: model.generate(gpt(), IDS, 1, end_id=True)),
    ("token ids (B, T), one or more each, got (1, 0)", lambda: model.generate(gpt(), IDS[:, :0], 1)),
    ("token ids (B, T), got (2,)", lambda: gpt()(IDS[0])),
    ("finite numbers as weight in file, got nan", lambda: checkpoints.assign_weights(HURT, HURT.state_dict(), "file", False)),
    ("ids as a tensor, got list", lambda: training.text.draw_windows([1, 2, 3], 2, 1, None, 0)),
    ("caches as `new_caches` returns them, got ab", lambda: gpt()(IDS, "ab")),
    ("got 1 with lengths [0, 0]", lambda: gpt()(IDS, gpt().new_caches(5)[:1] * 2)),
    ("causal=True, because a GPT predicts later tokens, got False", lambda: gpt(causal=False)),
    ("attention as a class that takes (d_in, d_out, context_length, dropout, num_heads), got", lambda: gpt(attention=nn.Linear)),
    ("a finite dropout from 0 to 1, got 7", lambda: model.GPT(11, 5, 8, 2, 0, dropout=7)),
    ("(d_in, d_out, context_length, dropout, num_heads, foo), got", lambda: gpt(foo=1)),
    ("rotary=False with positions='none', got True", lambda: gpt(positions="none", rotary=True)),
    ("an even head width with rotary=True, got 3", lambda: model.GPT(5, 3, 6, 2, 1, positions="rotary")),
    ("attention as a Module, got NoneType", lambda: model.TransformerBlock(None, None, 4)),
    ("missing 3 required positional arguments: 'd_model'", lambda: llama.Llama(11, 5, d_inner=3)),
    ("x (..., D = 4), got (3, 2)", lambda: llama.SwiGLU(4)(HALF)),
    ("more than context_length = 1 token ids, got 0", lambda: data.sliding_windows([], 1, 1)),
    ("ids as whole numbers, got None", lambda: tokenizer.merge([1, 2], (None, []), 9)),
    ("a new_id that is no id yet, got 2", lambda: tokenizer.merge([1, 2], (1, 2), 2)),
    ("a text that UTF-8 can encode, got '\\ud800'", lambda: tokenizer.train_bpe(chr(0xD800), 1)),
    ("text as a str, got bytes", lambda: tokenizer.train_bpe(b"aa", 1)),
    ("which loses a part of it", lambda: tokenizer.train_bpe("a b", 1, re.compile("a"))),
    ("merges in the order learned, got (256, 99) before its parts", lambda: tokenizer.encode_bpe("ab", {(256, 99): 257, (97, 98): 256})),
    ("ids that rise in the order learned, got [300, 299]", lambda: tokenizer.encode_bpe("abc", {(97, 98): 300, (98, 99): 299})),
    ("merges as a dict, got list", lambda: tokenizer.decode_bpe([97], [(97, 98)])),
    ("ids of bytes or of merges, got 256", lambda: tokenizer.decode_bpe([256], {(97, 98): 300})),
    ("x of two tokens or more, got (2, 1, 4)", lambda: experiments.leak_test(nn.Identity(), BATCH[:, :1])),
    ("x with tokens that differ, or no leak shows, got equal ones", lambda: experiments.leak_test(nn.Identity(), BATCH)),
    ("a finite largest logit, got inf", lambda: experiments.greedy_translate(lambda ids: X[0] * math.inf, 0, 1, 3)),
    ("logits (V,), got (3, 4)", lambda: experiments.greedy_translate(lambda ids: X, 0, 1, 3)),
    ("d_model to be a whole number of 1 or more, as an int, got np.int8(100)", lambda: llama.SwiGLU(np.int8(100))),
    ("a finite clip above 0, got '1'", lambda: training.TrainingConfig(clip="1")),
    ("a finite weight_decay from 0, got inf", lambda: training.decay_groups(LINE, math.inf)),
    ("a finite decline from 0 to 1, got 2.0", lambda: training.learning_rate(0, 5, 4.0, 0, 0.0, decline=2.0)),
    ("not JSON compliant", lambda: training.TrainingConfig(metadata={"loss": math.nan})),
    ("the loss as a scalar with a gradient, got a loss without a gradient", lambda: training.train(LINE, [X], lambda *_: X[0, 0], 1)),
    ("one batch or more, got none", lambda: training.train(LINE, [], len, 1)),
    ("a model with weights to train, got none", lambda: training.train(nn.ReLU(), [X], len, 1)),
    ("a list of batches, or a function from a number to a batch, got Tensor: pass [batch]", lambda: training.train(LINE, X, len, 1)),
    ("compute_loss as a Callable, got NoneType", lambda: training.train(LINE, [X], None, 1)),
    ("maps with 2 or 3 axes, got (3,)", lambda: chart.heat(X[:, 0], title="t")),
    ("maps: expected numbers, in rows of one length", lambda: chart.heat(X * 1j, title="t")),
    ("maps: expected numbers, in rows of one length, got [[1], [0, 1]]", lambda: chart.heat([[1], [0, 1]], title="t")),
    ("rows as whole numbers, got 1.5", lambda: chart.heat(X, [("a", 1.5), ("b", 1.5)], title="t")),
    ("framed cells of 3 by 4, got (1.0, 0)", lambda: chart.heat(X, title="t", framed=[(1.0, 0)])),
    ("Height: expected a text, got None", lambda: chart.bars({"a": [1]}, "a", title="t", ylabel=None)),
    ("xlim: expected numbers, in rows of one length, got 'ab'", lambda: chart.dots({"a": [1]}, title="t", xlabel="x", xlim="ab")),
    ("rows: expected 3 of them, got 2", lambda: chart.heat(X, "ab", title="t")),
    ("reference: expected a dict from names, got 's'", lambda: chart.lines({"a": [1]}, **AXES, reference="s")),
    ("texts only, or pairs (name, number) only, got [('a', 3), 'b']", lambda: chart.heat(X, [("a", 3), "b"], title="t")),
    ("marks as places, or as pairs (place, text), got {'m': (1,)}", lambda: chart.lines({"a": [1]}, **AXES, marks={"m": (1,)})),
    ("marks not named ['Across', 'Up', 'Lines'], got ['Across']", lambda: chart.lines({"a": [1]}, **AXES, marks={"Across": (0, "t")})),
    ("m: t: expected numbers above 0 for log_x, got -1.0", lambda: chart.lines({"a": [1]}, [1], **AXES, log_x=True, marks={"m": (-1, "t")})),
    ("ylim: expected numbers above 0 for log_y, got -1.0", lambda: chart.lines({"a": [1]}, **AXES, log_y=True, ylim=(-1, 4))),
    ("z: expected finite numbers, got nan", lambda: chart.scatter({"a": [[1], [2]]}, **AXES, labels={"z": (math.nan, 1)})),
    ("a: expected a finite number or more, got none", lambda: chart.lines({"a": [math.nan]}, **AXES)),
    ("a: expected numbers above 0 for log_y, got -2.0", lambda: chart.lines({"a": [1, -2, math.nan]}, **AXES, log_y=True)),
    ("x: expected numbers above 0 for log_x, got 0.0", lambda: chart.lines({"a": [1, 2]}, **AXES, log_x=True)),
    ("limit: expected finite numbers, got nan", lambda: chart.lines({"a": [1]}, **AXES, reference={"limit": math.nan})),
    ("joined: expected names from ['a'], got ['b']", lambda: chart.scatter({"a": [[1], [2]]}, **AXES, joined=["b"])),
    ("one of op, learned, None, x, query, key, value, score, weight, output, got 'y'", lambda: PICTURE.block((1, 1), "a", "y")),
    ("one of cached, process, memory, got 'y'", lambda: PICTURE.shelf(PICTURE.word((1, 1), "a"), "a", "y")),
    ("one part or more in each line, got none", lambda: plots.row(title="t")),
    ("texts, dicts with `values` or pairs of these in each line, got {'values': 1}", lambda: plots.column({"values": 1}, title="t")),
    ("frames as pairs (Picture, text), got [1, 2, 3, 4]", lambda: plots.steps([1, 2, 3, 4], title="t")),
    ("4 to 12 frames, got 13", lambda: plots.steps([("", "")] * 13, title="t")),
]
# fmt: on


@pytest.mark.parametrize(("message", "call"), CALLS, ids=[row[0] for row in CALLS])
def test_what_cannot_be_used_is_named(message, call):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        call()


def test_a_definition_that_fails_is_reported_if_asked_for(tmp_path, monkeypatch):
    monkeypatch.setattr("utils.pages.NOTEBOOKS", tmp_path)
    cells = [{"cell_type": "code", "source": "SIZE = 1 / 0"}]
    (tmp_path / "page.ipynb").write_text(json.dumps({"cells": cells}))
    with pytest.raises(AttributeError, match="'SIZE' .ZeroDivisionError: division"):
        pages.definitions("page")["SIZE"]
