"""Notebook 15 and three of its deeper ones: images, strands, maps and hairpins."""

from functools import partial

import torch
from torch import nn

from utils.embeddings import patchify
from utils.pages import definitions

dna = definitions("deeper/dna")
vision = definitions("15_beyond_text")


def main(seed):
    stats = images(definitions("15_beyond_text"), seed)
    stats |= neighbours(definitions("deeper/dna"), seed)
    stats |= strands(definitions("deeper/dna"), seed)
    stats |= maps(definitions("deeper/where_it_looks"), seed)
    return stats | anywhere(definitions("deeper/hairpins"), seed)


def images(book, seed):
    """Train the reader, and those that lack something; hide what the word looks at."""
    split = vision.split_digits(seed=seed)
    book["digits"], book["labels"], book["known"], held_out = split

    def trained(*zeros, steps=1000):
        torch.manual_seed(seed)
        model = book["ImageReader"]()
        for name in zeros:
            nn.init.zeros_(model.get_parameter(name)).requires_grad_(False)
        return book["train_on_questions"](model, steps)

    layer = "block.attention."
    models = {"reader": trained()}
    torch.manual_seed(seed)
    models["plain reshape"] = book["train_on_questions"](book["WrongReader"]())
    models["no attention"] = trained(layer + "out_proj.weight", layer + "out_proj.bias")
    models["equal weights"] = trained(layer + "W_query.weight")
    longer = trained(layer + "W_query.weight", steps=4000)
    models["equal weights, 4,000 steps"] = longer
    models["no positions"] = trained("positions")
    torch.manual_seed(seed + 100)
    *test, places = book["ask"](held_out, 2000)
    stats = {}
    for name in ("reader", "plain reshape"):
        last = torch.tensor(models[name].losses[-100:])
        stats[f"{name}: loss of the last 100 steps"] = last.mean()
    for name, model in models.items():
        colour, place = book["answered"](model, *test)
        stats |= {f"{name}: colour": colour, f"{name}: place": place}
    brightest = book["word_weights"](models["reader"], *test[:2]).argmax(dim=-1)
    stats["reader: largest weight on the right patch"] = (brightest == places).float()
    others = patchify(test[0], 8).amax(dim=-1).scatter(1, brightest[:, None], 0)
    another = (others > 0).float().multinomial(1)[:, 0]
    for name, at in {"brightest": brightest, "another digit": another}.items():
        hidden = book["hide"](test[0], at)
        fractions = book["answered"](models["reader"], hidden, *test[1:])
        stats[f"reader: {name} hidden"] = sum(fractions) / 2
    return {name: float(torch.as_tensor(x).mean()) for name, x in stats.items()}


def neighbours(book, seed):
    """Name the bases of pairs with attention, and with filters of five bases."""
    named, convolutions = book["arms_named"], book["convolution_reader"]
    return {
        "pairs, attention": named(book["build_reader"], seed),
        "pairs, convolution": named(partial(convolutions, 1), seed),
        "pairs, ten convolutions": named(partial(convolutions, 10), seed),
    }


def strands(book, seed):
    """Measure which bases are named, and where the reader looks."""

    def arms(positions):
        return torch.cat([positions[: dna.STEM], positions[-dna.STEM :]])

    torch.manual_seed(seed + 100)
    unseen = dna.hairpins(300)
    random = torch.randint(4, unseen.shape)
    torch.manual_seed(seed)
    reader = dna.train_on_strands(book["build_reader"]())
    shares = dna.strand_accuracy(reader, unseen)
    weights = book["hidden_weights"](reader, random)
    to_17 = [weights[:, 2, 17][random[:, 17] == base].mean() for base in range(4)]
    stats = {
        "arms": arms(shares).min(),
        "loop": shares[dna.STEM : -dna.STEM].mean(),
        "moved by one position": dna.strand_accuracy(reader, unseen.roll(1, 1)).mean(),
        "least weight on a partner": arms(
            book["hidden_weights"](reader, unseen).mean(0).flip(1).diagonal()
        ).min(),
        "random strands: least weight from 2 to 17": min(to_17),
    }

    torch.manual_seed(seed)
    embedding, block, last = book["build_reader"]()
    another = definitions("15_beyond_text")["open_block"](32, 1, dna.LENGTH)
    deeper = torch.nn.Sequential(embedding, block, another, last)
    dna.train_on_strands(deeper, steps=1000)
    moved = dna.strand_accuracy(deeper, unseen.roll(1, dims=1))
    stats["two blocks, moved by one position"] = moved.mean()

    def begins_anywhere(num_strands):
        strands = dna.hairpins(num_strands)
        strands[1::2] = strands[1::2].roll(1, dims=1)
        return strands

    torch.manual_seed(seed)
    reader = dna.train_on_strands(book["build_reader"](), begins_anywhere, steps=1000)
    for shift in (0, 1, 2):
        shares = dna.strand_accuracy(reader, unseen.roll(shift, dims=1)).roll(-shift)
        stats[f"learned moved, moved by {shift}"] = arms(shares).mean()
    return stats


def maps(book, seed):
    """Measure where the class token looks, and what hiding that patch costs."""
    images, labels, known, held_out = vision.split_digits(seed=seed)
    book["images"], book["labels"] = images, labels
    model = book["trained"](known, seed)
    tests = images[held_out], labels[held_out]
    weights = book["all_weights"](model, tests[0])
    brightest = weights[-1][:, 0, 1:].argmax(dim=1)
    bright, another, favourite, chance, ink, needed = book["hidden_in_turn"](
        model, *tests, brightest
    ).values()
    rolled = book["rollout"](weights)[:, 0, 1:].argmax(dim=1)
    hidden = book["hidden_in_turn"](model, *tests, rolled)
    return {
        "share of the favourite patch": brightest.bincount().max() / len(held_out),
        "at random minus brightest": chance - bright,
        "another image's minus brightest": another - bright,
        "favourite minus brightest": favourite - bright,
        "most ink minus brightest": ink - bright,
        "brightest minus most needed": bright - needed,
        "rollout minus most needed": hidden["the brightest of the map"] - needed,
    }


def anywhere(book, seed):
    """Train with rotary positions, and on loops of different lengths."""
    torch.manual_seed(seed + 100)
    unseen = dna.hairpins(300)
    places = torch.tensor(
        [*range(1, dna.STEM), *range(dna.STEM + dna.LOOP, dna.LENGTH - 1)]
    )
    stats, train = {}, book["train_strand_reader"]
    for name, make, steps, lr in (
        ("one matrix", book["OneMatrix"], 300, 1e-2),
        ("rotary, 1 block", book["rotary_1"], 300, 3e-3),
        ("rotary, 2 blocks", book["rotary_2"], 600, 3e-3),
    ):
        model = train(make, dna.hairpins, steps, lr, seed)
        stem = dna.strand_accuracy(model, unseen)[places].mean()
        moved = dna.strand_accuracy(model, unseen.roll(1, dims=1))[places + 1].mean()
        stats |= {f"{name}: stem": stem, f"{name}: moved": moved}
    torch.manual_seed(seed + 100)
    tests = torch.cat([book["loops"](100, n) for n in (4, 6, 8)])
    for name, make, lr in (
        ("one matrix", book["loop_matrix"], 1e-2),
        ("an MLP", book["loop_mlp"], 5e-3),
        ("1 block", book["loop_reader"](1), 5e-3),
        ("2 blocks", book["loop_reader"](2), 5e-3),
    ):
        model = train(make, book["loops"], 600, lr, seed)
        stats[f"loops, {name}"] = dna.strand_accuracy(model, tests)[:6].mean()
    for loop in (4, 8):  # how much the second block looks at the partners
        torch.manual_seed(seed + 100)
        weights = book["who_looks_where"](model, book["loops"](50, loop))
        share = weights.flip(1).diagonal(offset=8 - loop)[:6].mean()
        stats[f"loops, 2 blocks: weight on the partner, loop of {loop}"] = share
    return stats
