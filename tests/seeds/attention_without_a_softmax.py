"""Notebook 13 and its deeper one: what a state recalls of lists of pairs."""

from copy import deepcopy
from functools import partial

import torch

from utils.experiments import is_right
from utils.pages import definitions

pairs = definitions("13_attention_without_a_softmax")
NO_ORDER = "without the order"


def main(seed):
    page = definitions("13_attention_without_a_softmax")
    deeper = definitions("deeper/a_layer_with_the_delta_rule")
    return rules(page, seed) | resets(deeper, seed) | stacks(page, seed)


def rules(page, seed):
    """Recall 24 pairs of each kind of list by each rule, new pairs and old ones."""
    stats = {}
    for kind, draw in page["LISTS"].items():
        for name, rule in page["RULES"].items():
            build = partial(pairs.PairReader, rule)
            reader = pairs.train_recall(build, draw, seed)
            letters, _, asked, _ = lists = draw(2000, 24)
            right = is_right(reader, lists).float()
            stats[f"{kind}: {name}"] = right.mean()
            last = pairs.last_positions(letters == asked[:, None])[:, 0]
            beta = torch.sigmoid(reader.beta.weight[:26])  # without the reset token
            stats[f"{kind}: {name}, β of a letter"] = beta.mean()
            newest, oldest = right[last >= 18].mean(), right[last < 6].mean()
            stats[f"{kind}: {name}, newest quarter minus oldest"] = newest - oldest
        gain = stats[f"{kind}: correct"] - stats[f"{kind}: add"]
        stats[f"{kind}: correct minus add"] = gain
    return stats


def resets(page, seed):
    """Follow lists with resets; then once more with the value of a reset zero."""
    stats, draw = {}, page["draw_resets"]
    for name, rule in page["RULES"].items():
        reader = pairs.train_recall(partial(pairs.PairReader, rule), draw, seed)
        lists, quiet = draw(2000, 24), page["silenced"](deepcopy(reader))
        for row, model in ((name, reader), (f"{name}, silenced", quiet)):
            fractions = page["three_fractions"](model, lists)
            for what, fraction in zip(("a digit", "none", "old digit"), fractions):
                stats[f"{row}: {what}"] = fraction
        stats[f"{name}: gate of the reset"] = torch.sigmoid(reader.gate.weight[-1, 0])
        stats[f"{name}: gate of a letter"] = torch.sigmoid(reader.gate.weight[:8]).min()
    return stats


def stacks(page, seed):
    """Recall 24 pairs of each kind of list with stacks trained on all kinds."""
    readers = {NO_ORDER: page["count_digits"]}
    for name, layers in page["STACKS"].items():
        readers[name] = page["train_on_all"](layers, seed)
    stats, kinds = {}, page["KINDS"]
    for name, reader in readers.items():
        right = page["right_of_each"](reader)
        stats |= {f"{kind}: {name}": fraction for kind, fraction in zip(kinds, right)}
        stats[f"worst kind: {name}"] = min(right)
    return stats | compare(stats, kinds)


def compare(stats, kinds):
    """Subtract what one reader finds of each kind from what another one does."""
    compared = {"one softmax layer": NO_ORDER}
    compared["delta, then softmax with positions"] = "two softmax layers with positions"
    differences = {}
    for name, other in compared.items():
        gains = [stats[f"{k}: {name}"] - stats[f"{k}: {other}"] for k in kinds]
        differences[f"{name} minus {other}, most"] = max(gains, key=abs)
    return differences
