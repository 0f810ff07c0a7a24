"""Notebook 15 and its deeper one: what a state recalls, by rules and by layers."""

from functools import partial

from torch.nn.functional import normalize

from tests.seeds import definitions
from utils.experiments.pairs import PairReader, StackReader, recall_accuracy
from utils.experiments.streams import stream_accuracy, train_stream_reader


def main(seed):
    book = definitions("15_attention_without_a_softmax")
    stacks = definitions("deeper/a_layer_with_the_delta_rule")["STACKS"]
    return pairs(book, seed) | streams(book["RULES"], seed) | layers(stacks, seed)


def pairs(book, seed):
    """Recall 24 pairs by each way of reading."""

    def accuracy(read, width=8, steps=600):
        return recall_accuracy(partial(PairReader, read, width), None, seed, steps)[-1]

    found = {
        "softmax, width 8": accuracy(book["read_softmax"]),
        "sum, width 8": accuracy(book["read_sum"]),
        "sum, width 8, 5,400 steps": accuracy(book["read_sum"], steps=5400),
        "sum, width 16": accuracy(book["read_sum"], width=16),
    }
    for beta in (1.0, 0.25):
        read = partial(book["read_delta"], beta=beta)
        found[f"delta rule, beta {beta}"] = accuracy(read)
    return found


def streams(rules, seed):
    """Follow a text by each rule; then once more with the sign's value set to zero."""
    found, readers = {}, {}
    for name, rule in rules.items():
        reader, texts = train_stream_reader(rule, seed)
        digit, none = stream_accuracy(reader, texts)
        readers[name] = reader
        reader.value.weight.data[10] = 0
        _, silent = stream_accuracy(reader, texts)
        found |= {f"{name}: a digit": digit, f"{name}: none": none}
        found[f"{name}: none, silent sign"] = silent
    found["gate: the sign"] = readers["both"].gates()[-1]
    query, key = readers["correct"].query.weight, readers["correct"].key.weight
    products = normalize(query) @ normalize(key[8:]).T  # with that of the sign
    found["correct: least product of the sign and a letter"] = products.abs().min()
    reader, texts = train_stream_reader(rules["correct"], seed, steps=1800)
    digit, none = stream_accuracy(reader, texts)
    found["correct: a digit, 1,800 steps"] = digit
    found["correct: none, 1,800 steps"] = none
    return found


def layers(stacks, seed):
    """Recall 24 pairs with stacks of layers."""
    found = {}
    for task, letters in (("letters differ", None), ("letters return", 8)):
        for name, kinds in stacks.items():
            shares = recall_accuracy(partial(StackReader, kinds), letters, seed)
            found[f"{task}: {name}"] = shares[-1]
    stack = partial(StackReader, stacks["delta, delta"])
    shares = recall_accuracy(stack, None, seed, steps=5400)
    found["letters differ: delta, delta, 5,400 steps"] = shares[-1]
    return found
