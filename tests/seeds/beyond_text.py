"""Notebook 11 and two of its deeper ones: digits, strands, maps and hairpins."""

from functools import partial

import torch

from tests.seeds import definitions
from utils.embeddings import patchify
from utils.experiments import is_right
from utils.experiments.digits import split_digits, train_on_digits, vision_transformer
from utils.experiments.strands import (
    LENGTH,
    LOOP,
    STEM,
    hairpins,
    partner_weights,
    strand_accuracy,
    strand_reader,
    train_on_strands,
)


def main(seed):
    found = digits(definitions("11_beyond_text"), seed) | strands(seed)
    found |= maps(definitions("deeper/where_it_looks"), seed)
    return found | anywhere(definitions("deeper/hairpins"), seed)


def digits(book, seed):
    """Train with many images and few, without positions, and on strips."""
    images, labels, known, held_out = split_digits(seed=seed)
    new = images[held_out], labels[held_out]

    def accuracy(build, num_images=1500, positions=True):
        torch.manual_seed(seed)
        model = build()
        if not positions:
            torch.nn.init.zeros_(model.embedding.positions).requires_grad_(False)
        rows = known[:num_images]
        train_on_digits(model, images[rows], labels[rows])
        return is_right(model, new).float().mean().item()

    squares = partial(vision_transformer, patchify)
    x = images[known[:150]].flatten(1)
    nearest = labels[known[:150]][torch.cdist(new[0].flatten(1), x).argmin(dim=1)]
    others = (nearest == new[1]).float().mean().item(), accuracy(book["mlp"], 150)
    return {
        "no positions": accuracy(squares, positions=False),
        "1,500 images: transformer": accuracy(squares),
        "strips": accuracy(partial(vision_transformer, book["strips"])),
        "150 images: transformer behind the others": (
            min(others) - accuracy(squares, 150)
        ),
    }


def strands(seed):
    """Measure which bases are named, and where the reader looks."""

    def arms(places):
        return torch.cat([places[:STEM], places[-STEM:]])

    torch.manual_seed(seed + 100)
    unseen = hairpins(300)
    torch.manual_seed(seed)
    reader = train_on_strands(strand_reader(), hairpins(20_000))
    places = strand_accuracy(reader, unseen)
    strand = torch.tensor(["ACGT".index(base) for base in "GATTACACCAGTGTGTAATC"])
    partners = partner_weights(reader, strand).flip(1).diagonal()
    found = {
        "first arm": places[:STEM].mean(),
        "second arm": places[-STEM:].mean(),
        "loop": places[STEM:-STEM].mean(),
        "moved by one place": strand_accuracy(reader, unseen.roll(1, dims=1)).mean(),
        "moved, from place 2 to 17": partner_weights(reader, strand.roll(1))[2, 17],
        "least weight on a partner": arms(partners).min(),
    }
    torch.manual_seed(seed)
    examples = hairpins(20_000)
    examples[1::2] = examples[1::2].roll(1, dims=1)
    reader = train_on_strands(strand_reader(), examples, steps=1000)
    for shift in (0, 1, 2):
        places = strand_accuracy(reader, unseen.roll(shift, dims=1)).roll(-shift)
        found[f"learned moved, moved by {shift}"] = arms(places).mean()
    return found


def maps(book, seed):
    """Measure where the class token looks, and what hiding that patch costs."""
    images, labels, known, held_out = split_digits(seed=seed)
    book["images"], book["labels"] = images, labels
    model = book["trained"](known, seed)
    tests = images[held_out], labels[held_out]
    weights = book["all_weights"](model, tests[0])
    brightest = weights[-1][:, 0, 1:].argmax(dim=1)
    bright, _, _, chance, _, needed = book["hidden_in_turn"](
        model, *tests, brightest
    ).values()
    rolled = book["rollout"](weights)[:, 0, 1:].argmax(dim=1)
    hidden = book["hidden_in_turn"](model, *tests, rolled)
    return {
        "share of the favourite patch": brightest.bincount().max() / len(held_out),
        "at random minus brightest": chance - bright,
        "brightest minus most needed": bright - needed,
        "rollout minus most needed": hidden["the brightest of the map"] - needed,
    }


def anywhere(book, seed):
    """Train with rotary positions, and on loops of different lengths."""
    torch.manual_seed(seed + 100)
    unseen = hairpins(300)
    places = torch.tensor([*range(1, STEM), *range(STEM + LOOP, LENGTH - 1)])
    found, train = {}, book["trained"]
    for name, make, steps, lr in (
        ("one matrix", book["OneMatrix"], 300, 1e-2),
        ("rotary, 1 block", book["rotary_1"], 300, 3e-3),
        ("rotary, 2 blocks", book["rotary_2"], 600, 3e-3),
    ):
        model = train(make, hairpins, steps, lr, seed)
        stem = book["named"](model, unseen)[:, places].mean()
        moved = book["named"](model, unseen.roll(1, dims=1))[:, places + 1].mean()
        found |= {f"{name}: stem": stem, f"{name}: moved": moved}
    torch.manual_seed(seed + 100)
    tests = torch.cat([book["loops"](100, n) for n in (4, 6, 8)])
    for name, make, lr in (
        ("one matrix", book["loop_matrix"], 1e-2),
        ("an MLP", book["loop_mlp"], 5e-3),
        ("1 block", book["loop_reader"](1), 5e-3),
        ("2 blocks", book["loop_reader"](2), 5e-3),
    ):
        model = train(make, book["loops"], 600, lr, seed)
        found[f"loops, {name}"] = book["named"](model, tests)[:, :6].mean()
    for loop in (4, 8):  # how much the second block looks at the partners
        torch.manual_seed(seed + 100)
        weights = book["who_looks_where"](model, book["loops"](50, loop))
        share = weights.flip(1).diagonal(offset=8 - loop)[:6].mean()
        found[f"loops, 2 blocks: weight on the partner, loop of {loop}"] = share
    return found
