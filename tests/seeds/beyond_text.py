"""What notebook 11 and two of its deeper ones state, measured with any seed."""

import torch

from tests.seeds import definitions
from utils.training.digits import digits


def main(seed):
    book = definitions("11_beyond_text")
    found = pictures(book, seed) | pairs(book, seed)
    found |= maps(definitions("deeper/where_it_looks"), seed)
    return found | anywhere(definitions("deeper/hairpins"), seed)


def pictures(book, seed):
    """Three methods, with many images and few; without places; strips."""
    images, labels, known, held_out = digits(seed=seed)
    book["images"], book["labels"] = images, labels
    fit, right, loss = book["fit"], book["right"], book["digit_loss"]

    def made(name, *cut):
        torch.manual_seed(seed)
        return book[name](*cut)

    def share(model, n=1500):
        return right(fit(model, loss, known[:n]), held_out).item()

    got = {}
    for n in (1500, 150):
        x, new = images[known[:n]].flatten(1), images[held_out].flatten(1)
        nearest = labels[known[:n]][torch.cdist(new, x).argmin(dim=1)]
        hits = (nearest == labels[held_out]).float().mean().item()
        mlp, ours = share(made("mlp"), n), share(made("vision_transformer"), n)
        got |= {
            f"{n} images: nearest neighbour": hits,
            f"{n} images: mlp": mlp,
            f"{n} images: vision transformer": ours,
        }
    got["150 images: transformer behind the others"] = min(hits, mlp) - ours
    model = made("vision_transformer")
    torch.nn.init.zeros_(model.embedding.positions).requires_grad_(False)
    got["transformer: no positions"] = share(model)
    got["transformer: strips"] = share(made("vision_transformer", book["strips"]))
    return got


def pairs(book, seed):
    """Hairpins: who names what, and where it looks."""
    stem = book["STEM"]

    def arms(places):
        return torch.cat([places[:stem], places[-stem:]])

    torch.manual_seed(seed + 100)
    unseen = book["hairpins"](300)
    moved = unseen.roll(1, dims=1)
    torch.manual_seed(seed)
    fit, loss = book["fit"], book["strand_loss"]
    reader = fit(book["strand_reader"](), loss, book["hairpins"](20_000), steps=200)
    places = book["named"](reader, unseen)
    found = {
        "hairpins: first arm": places[:stem].mean(),
        "hairpins: second arm": places[-stem:].min(),
        "hairpins: loop": places[stem:-stem].mean(),
        "hairpins: moved by one place": book["named"](reader, moved).mean(),
    }
    strand = torch.tensor(["ACGT".index(base) for base in "GATTACACCAGTGTGTAATC"])
    weights = book["who_looks_where"](reader, strand.roll(1))
    found["hairpins: moved, from place 2 to 17"] = weights[2, 17]
    partners = book["who_looks_where"](reader, strand).flip(1).diagonal()
    found["hairpins: least weight on a partner"] = arms(partners).min()

    def begins_anywhere(num_strands):
        strands = book["hairpins"](num_strands)
        strands[1::2] = strands[1::2].roll(1, dims=1)
        return strands

    torch.manual_seed(seed)
    reader = fit(book["strand_reader"](), loss, begins_anywhere(20_000), steps=1000)
    for shift in (0, 1, 2):
        places = book["named"](reader, unseen.roll(shift, dims=1)).roll(-shift)
        found[f"hairpins: learned moved, moved by {shift}"] = arms(places).mean()
    return found


def maps(book, seed):
    """Where the class token looks, and what hiding that patch costs."""
    images, labels, known, held_out = digits(seed=seed)
    book["images"], book["labels"] = images, labels
    model = book["trained"](known, seed)
    tests = images[held_out], labels[held_out]
    weights = book["all_weights"](model, tests[0])
    brightest = weights[-1][:, 0, 1:].argmax(dim=1)
    favourite = brightest.bincount().max() / len(held_out)
    hidden = book["hidden_in_turn"](model, *tests, brightest)
    bright, other, usual, chance, ink, needed = hidden.values()
    rolled = book["rollout"](weights)[:, 0, 1:].argmax(dim=1)
    hidden = book["hidden_in_turn"](model, *tests, rolled)
    return {
        "maps: share of the favourite patch": favourite,
        "maps: brightest minus most ink": bright - ink,
        "maps: at random minus brightest": chance - bright,
        "maps: another image's minus brightest": other - bright,
        "maps: the favourite's minus brightest": usual - bright,
        "maps: brightest minus most needed": bright - needed,
        "maps: rollout minus most needed": hidden["the brightest of the map"] - needed,
    }


def anywhere(book, seed):
    """Rotary positions, and loops of different lengths."""
    torch.manual_seed(seed + 100)
    unseen, stem, loop = book["hairpins"](300), book["STEM"], book["LOOP"]
    places = [*range(1, stem), *range(stem + loop, book["LENGTH"] - 1)]
    along = [place + 1 for place in places]
    found, train = {}, book["trained"]
    for name, make, steps, lr in (
        ("one matrix", book["OneMatrix"], 300, 1e-2),
        ("rotary, 1 block", book["rotary_1"], 300, 3e-3),
        ("rotary, 2 blocks", book["rotary_2"], 600, 3e-3),
    ):
        model = train(make, book["hairpins"], steps, lr, seed)
        moved = book["named"](model, unseen.roll(1, dims=1))
        found[f"{name}: stem"] = book["named"](model, unseen)[:, places].mean()
        found[f"{name}: moved"] = moved[:, along].mean()
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
