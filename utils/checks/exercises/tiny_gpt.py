"""Exercises of the notebook on a tiny GPT: block, model, and how tokens are chosen."""

from functools import reduce

import torch
from torch import nn
from torch.nn import functional as F

from utils import model
from utils.checks import layer_probes, shared
from utils.checks.definition import Case, Diagnosis, Exercise, Mistake, draw, draw_ids
from utils.checks.shared import softmax_of


class Layer(nn.Module):
    """A stand-in for a part of a model, which a message shows by its name."""

    def __init__(self, name, d_in, d_out=None):
        super().__init__()
        self.name, seed = name, sum(map(ord, name))
        self.weight = nn.Parameter(draw(d_in, d_out or d_in, seed=seed))

    def __repr__(self):
        return self.name

    def forward(self, x):
        return torch.tanh(x @ self.weight) if x.is_floating_point() else self.weight[x]


def layer_norm(x):
    return F.layer_norm(x, x.shape[-1:])


def right_half(x, part, norm=layer_norm):
    return x + part(norm(x))


def norms_missing(module, learned):
    """Name a norm that is missing, or has no weight to learn."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    for name in ("norm1", "norm2"):
        if f"{name}.weight" not in parameters:
            return Diagnosis("norms-missing", f"Your module has no `{name}` with a weight to learn: self.{name} = nn.LayerNorm(d_model).")  # fmt: skip
    return None


def norm_shared(module, learned):
    """Name a norm that is used in both places, by giving each norm other weights."""
    twin = layer_probes.rebuild(module, learned)
    x = layer_probes.draw_sentences(learned)
    for norm, end in ((twin.norm1, 2.0), (twin.norm2, -1.0)):
        norm.weight.data.copy_(torch.linspace(0.5, end, learned.build.d_model))
    output, (attention, feed_forward, _) = twin(x.clone()), learned.build
    for norm in (twin.norm1, twin.norm2):
        with_one_norm = right_half(right_half(x, attention, norm), feed_forward, norm)
        if torch.allclose(output, with_one_norm, atol=1e-4):
            return Diagnosis("one-norm-shared", "You used one norm in both places: make two, self.norm1 and self.norm2, and use both.")  # fmt: skip
    return None


FIVE, SEVEN = ((Layer("attention", d), Layer("feed_forward", d), d) for d in (5, 7))


def transformer_block(learned, x):
    attention, mlp = learned.build.attention, learned.build.feed_forward
    y = x + attention(layer_norm(x))
    z = y + mlp(layer_norm(y))
    return z


exercise_8_1 = Exercise(
    id="8.1",
    right=transformer_block,
    course=model.TransformerBlock,
    class_signature="TransformerBlock(attention, feed_forward, d_model)",
    returns="from x (B, T, D) the output (B, T, D), with its own norm1 and norm2",
    mistakes=[
        Mistake("post-norm", "You normalise after the addition, which is post-norm: put the norm before the sublayer, as in x + attention(norm1(x)).", "y = layer_norm(x + attention(x))", "z = layer_norm(y + mlp(y))"),
        Mistake("norm-after-sublayer", "You normalise what the sublayer returns: normalise what it reads, as in x + attention(norm1(x)).", "y = x + layer_norm(attention(x))", "z = y + layer_norm(mlp(y))"),
        Mistake("residual-after-norm", "You added a sublayer's result to what the norm returns: add it to what the norm reads, as in x + attention(norm1(x)).", "y = layer_norm(x) + attention(layer_norm(x))", "z = layer_norm(y) + mlp(layer_norm(y))"),
        Mistake("residual-missing", "You didn't add a sublayer's result to what came before it: x + attention(norm1(x)), and then y + feed_forward(norm2(y)) with that sum y.", "y = attention(layer_norm(x))", "z = mlp(layer_norm(y))"),
        Mistake("sublayers-parallel", "You let both sublayers read the block's input: feed_forward reads norm2 of the sum y.", "z = y + mlp(layer_norm(x))"),
        Mistake("norm-unused", "You let a sublayer read its input without a norm: use attention(norm1(x)), and feed_forward(norm2(y)) of the sum y.", "y = x + attention(x)", "z = y + mlp(y)"),
    ],
    probes=[norms_missing, norm_shared, layer_probes.no_gradient, layer_probes.changes_in_training],
    cases=[
        Case(draw(1, 3, 5, scale=2.0, shift=1.0), build=FIVE),
        Case(draw(3, 11, 7, scale=3.0), build=SEVEN, note="another width"),
        Case(draw(2, 1, 7, scale=30.0), build=SEVEN, note="one large token"),
    ],
)  # fmt: skip

SOFTMAX = shared.SOFTMAX + [Mistake("softmax-over-batch", "Your softmax doesn't run over the vocabulary: use dim=-1.", "dim = 0")]  # fmt: skip
LOW, LOW_ROW = torch.tensor([[300.0], [0.0]]), "a row of low logits"
FIVE_LOGITS = torch.tensor([1.5, -0.5, 0.3, 2.0, -1.0])


def best(logits, k):
    """Return the k largest logits of each row, from the largest down; without k, all."""
    return logits.topk(k or logits.shape[-1]).values


TOP_K = [
    Mistake("temperature-ignored", "Your temperature changes nothing: divide the logits by it, before the softmax.", "divisor = 1"),
    Mistake("temperature-inverted", "You multiplied by the temperature: divide by it.", "divisor = 1 / temperature"),
    Mistake("temperature-after-softmax", "You divided by the temperature after the softmax, so rows no longer sum to 1: divide the logits.", "divisor = 1; return soft / temperature"),
    Mistake("k-smallest", "You kept the k least likely tokens: take the largest logits.", "is_kept = -logits >= best(-logits, top_k)[..., -1:]"),
    Mistake("one-too-few", "You kept k - 1 tokens: the k-th best stays too, so cut only what is smaller.", "is_kept = (logits > border) | (top_k is None)"),
    Mistake("one-too-many", "You kept k + 1 tokens: the k-th best has index k - 1.", "top_k = top_k and min(top_k + 1, logits.shape[-1])"),
    Mistake("one-threshold-for-all", "You used one threshold for all rows: each row has its own, topk(top_k, dim=-1).values[..., -1:].", "border = best(logits.flatten(), top_k)[-1]"),
    Mistake("zero-for-minus-inf", "You set the logits outside the top k to 0 (or 1e-9), and exp(0) = 1 is a share like any other: set them to -inf.", "cut = logits.where(is_kept, 0.0)"),
    Mistake("not-renormalised", "You cut tokens after the softmax, so rows no longer sum to 1: set logits to -inf before it, or divide by the new sum.", "cut = logits; return soft.where(is_kept, 0.0)"),
]  # fmt: skip


def next_token_probs(logits, temperature=1.0, top_k=None):
    border = best(logits, top_k)[..., -1:]
    is_kept = logits >= border
    cut = logits.where(is_kept, -torch.inf)
    divisor = temperature
    hidden = cut / divisor
    dim = -1
    soft = softmax_of(hidden, dim)
    return soft


exercise_8_2 = Exercise(
    id="8.2",
    page="deeper/drawing_the_next_token",
    skip_probes=("no-gradient",),
    right=next_token_probs,
    course=model.next_token_probs,
    smallest_inputs={"top_k": 1},
    returns="probabilities of the shape of the logits (…, V), zero outside the top k",
    mistakes=TOP_K + SOFTMAX,
    cases=[
        Case(FIVE_LOGITS, 0.5),
        Case(draw(3, 11), note="temperature and top_k left out"),
        Case(draw(5, 5, scale=2.0), 0.7, 3),
        Case(draw(2, 3, 11, scale=2.0), 1.6, 5),
        Case(draw(2, 7) - LOW, 1.3, 3, note=LOW_ROW),
        Case(draw(2, 7, scale=200.0), 0.5, 5, note="large logits"),
        Case(draw(2, 5), 1.0, 5, note="k is the whole vocabulary"),
    ],
)

TOP_P = [
    Mistake("crossing-token-cut", "You cut the token with which the sum reaches p: cut a token only if the likelier ones hold p without it.", "is_kept = sums <= p"),
    Mistake("one-too-many", "You kept one token too many: stop with the one that makes the sum reach p.", "is_kept = torch.ones_like(best).cumsum(-1) <= (sums - best < p).sum(-1, True) + 1"),
    Mistake("wrong-axis", "You added up along the first axis: each row has its own sums, cumsum(dim=-1).", "sums = best.cumsum(0)"),
    Mistake("not-renormalised", "You didn't divide what is left by its own sum: divide, so that rows sum to 1.", "shares = cut"),
    Mistake("order-lost", "You returned the probabilities from the largest down: each belongs at the position of its token; `scatter` puts them back.", "return shares"),
    Mistake("gather-for-scatter", "You used `gather` with the order, which permutes the probabilities once more: `scatter` undoes the sorting.", "return shares.gather(-1, order)"),
    Mistake("from-the-least-likely", "You began the sum with the least likely tokens, or didn't sort: sort with descending=True.", "order = soft.argsort(-1)"),
    Mistake("p-is-one", "With p = 1 you don't return the probabilities of all tokens: leave these lines of the stub as they are.", "return logits if p == 1 else torch.zeros_like(best).scatter(-1, order, shares)"),
    Mistake("threshold-for-sum", "You compared single probabilities with p: p is for their sum.", "is_kept = (best >= p) | (sums == best) | (p == 1)", "is_kept = (best >= p) | (sums == best)"),
]  # fmt: skip

EXAMPLE = torch.tensor([0.2, 0.5, 0.3]).log()


def top_p_probs(logits, p):
    hidden = logits
    dim = -1
    soft = softmax_of(hidden, dim)
    order = soft.argsort(-1, descending=True)
    best = soft.gather(-1, order)
    sums = best.cumsum(-1)
    is_kept = sums - best < p
    cut = best * is_kept
    shares = cut / cut.sum(-1, keepdim=True)
    return torch.zeros_like(best).scatter(-1, order, shares)


exercise_8_3 = Exercise(
    id="8.3",
    page="deeper/drawing_the_next_token",
    skip_probes=("no-gradient",),
    right=top_p_probs,
    course=model.top_p_probs,
    returns="probabilities of the shape of the logits (…, V), zero outside the smallest set of best tokens that hold p",
    mistakes=TOP_P + SOFTMAX,
    cases=[
        Case(EXAMPLE, 0.75),
        Case(EXAMPLE, 0.1, note="the best token alone holds more than p"),
        Case(draw(5, 5, scale=2.0), 0.8),
        Case(draw(2, 3, 11), 0.35),
        Case(draw(2, 7) - LOW, 0.6, note=LOW_ROW),
        Case(draw(2, 7, scale=200.0), 0.95, note="large logits"),
        Case(torch.tensor([2.0, 1, 0]), 1, note="p is 1, so all stay"),
    ],
)


def parts(d_model, vocab_size, num_blocks):
    blocks = tuple(Layer(f"block {i}", d_model) for i in range(num_blocks))
    ends = Layer("norm", d_model), Layer("output", d_model, vocab_size)
    return Layer("embedding", vocab_size, d_model), blocks, *ends


def gpt_logits(token_ids, embedding, blocks, norm, output):
    first = embedding(token_ids)
    last = reduce(lambda x, block: block(x), blocks, first)
    normed = norm(last)
    logits = output(normed)
    return logits


exercise_8_4 = Exercise(
    id="8.4",
    right=gpt_logits,
    course=model.gpt_logits,
    returns="the logits (B, T, V) of the token ids (B, T)",
    mistakes=[
        Mistake("blocks-not-in-turn", "You let each block read the embedding: only the first one does, and the others read what the block before them returned, x = block(x).", "last = [block(first) for block in blocks][-1]", "last = sum(block(first) for block in blocks)"),
        Mistake("only-the-first-block", "You stop after the first block: norm, output and return come after the loop, so they are indented less than its lines.", "last = blocks[0](first)"),
        Mistake("fixed-number-of-blocks", "You call a fixed number of blocks: there may be any number, so take all of them, `for block in blocks:`.", "last = reduce(lambda x, block: block(x), blocks[:2], first)", "last = reduce(lambda x, block: block(x), blocks[:3], first)"),
        Mistake("blocks-called", "You call `blocks`, which is no module but several: call one after the other, `for block in blocks:`.", "last = blocks(first)"),
        Mistake("blocks-missing", "What your blocks return is lost: x = block(x) makes it the next input.", "last = first"),
        Mistake("norm-missing", "You left out the norm: it comes between the last block and output, output(norm(x)).", "normed = last"),
        Mistake("output-before-norm", "You normalise the logits: the norm comes first, output(norm(x)).", "logits = norm(output(last))"),
        Mistake("output-missing", "You return vectors (B, T, D): output turns them into logits.", "logits = normed"),
        Mistake("last-position-only", "You return the logits of the last position only: return those of all positions.", "return logits[:, -1]", "return logits[:, -1:]"),
    ],
    cases=[
        Case(draw_ids(0, 7, (2, 3)), *parts(5, 7, 2)),
        Case(draw_ids(0, 11, (3, 5)), *parts(7, 11, 7), note="seven blocks"),
    ],
)  # fmt: skip
