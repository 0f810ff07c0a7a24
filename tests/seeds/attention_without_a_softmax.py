"""Notebook 15 and its deeper one: what a state recalls, by rules and by layers."""

from functools import partial

import torch

from tests.seeds import definitions
from utils.experiments import is_right
from utils.experiments.pairs import draw_pairs, recall_accuracy, train_recall


def main(seed):
    book = definitions("13_attention_without_a_softmax")
    deeper = definitions("deeper/a_layer_with_the_delta_rule")
    return pairs(book, seed) | streams(book, seed) | layers(deeper, seed)


def pairs(book, seed):
    """Recall 24 pairs with states of several shapes, and by several ways to write."""
    found, PairReader = {}, book["PairReader"]
    for name, shape in book["SHAPES"].items():
        reader = train_recall(partial(PairReader, *shape), draw_pairs, seed)
        found[name] = recall_accuracy(reader, draw_pairs)[-1]
    found["8 × 16 minus 8 × 8"] = found["sum, 8 × 16"] - found["sum, 8 × 8"]
    ways = {name: partial(PairReader, read) for name, read in book["WRITES"].items()}
    ways["β learned"] = lambda: PairReader(book["ReadWithLearnedBeta"]())
    for name, build in ways.items():
        reader, lists = train_recall(build, draw_pairs, seed), draw_pairs(2000, 24)
        right = is_right(reader, lists).float().mean().item()
        found[f"{name}: right"] = right
        found[f"{name} minus sum: right"] = right - found["sum: right"]
    return found


def streams(book, seed):
    """Follow a text by each rule; then once more with the value of a reset zero."""
    found, rules, NONE, draw = {}, book["RULES"], book["NONE"], book["draw_streams"]
    runs = [*((name, 600) for name in rules), ("correct", 1800)]
    for name, steps in runs:
        build = partial(book["StreamReader"], rules[name])
        reader = train_recall(build, draw, seed, steps)
        texts, lengths = draw(2000, 24), reader.value.weight.norm(dim=-1)
        digit, none = book["stream_accuracy"](reader, texts)
        with torch.no_grad():
            reader.value.weight[NONE] = 0
        _, silenced = book["stream_accuracy"](reader, texts)
        row = {
            "old digit when silenced": book["old_digit_fraction"](reader, texts),
            "a digit": digit,
            "none": none,
            "none lost when silenced": none - silenced,
            "length of none": lengths[NONE] / lengths[:NONE].mean(),
            "gate of the reset": torch.sigmoid(reader.numbers.weight[-1, 1]),
        }
        found |= {f"{name}, {steps}: {what}": row[what] for what in row}
    without = partial(draw, reset=0)
    for name in ("add", "correct"):
        build = partial(book["StreamReader"], rules[name])
        reader = train_recall(build, without, seed)
        digit, _ = book["stream_accuracy"](reader, without(2000, 24))
        found[f"{name}, no resets: a digit"] = digit
    return found


def layers(book, seed):
    """Recall 24 pairs with stacks of layers."""
    stacks = book["STACKS"]

    def accuracy(name, letters, steps=600):
        draw = partial(draw_pairs, num_letters=letters)
        build = partial(book["StackReader"], stacks[name])
        reader = train_recall(build, draw, seed, steps)
        return recall_accuracy(reader, draw)[-1]

    found = {}
    for task, letters in (("letters differ", None), ("letters return", 8)):
        for name in stacks:
            found[f"{task}: {name}"] = accuracy(name, letters)
    slow = accuracy("delta, delta", None, 5400)
    found["letters differ: delta, delta, 5,400 steps"] = slow
    return found
