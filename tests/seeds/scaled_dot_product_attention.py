"""Notebook 04 and its deeper one: learning with and without the root."""

import torch
from torch import nn

from utils.attention import SelfAttention
from utils.pages import definitions

phone = definitions("04_scaled_dot_product_attention")


def main(seed):
    stats, scales = {}, {"with": 1 / 8, "without": 1.0}
    book = definitions("deeper/why_the_root")
    train_room_layer, accuracy_after = book["train_room_layer"], book["accuracy_after"]
    RoomLayer = book["RoomLayer"]
    for root, scale in scales.items():
        _, stats[f"new rooms at each step, {root}"] = train_room_layer(
            scale, 19_200, 3e-3, seed
        )
    few = {
        (root, lr): train_room_layer(scale, 256, lr, seed)
        for root, scale in scales.items()
        for lr in (3e-3, 1e-2)
    }
    stats["256 rooms, without"] = few["without", 3e-3][1]
    stats["256 rooms, with"] = few["with", 3e-3][1]
    for root in scales:
        stats[f"256 rooms at 0.01, {root}"] = few[root, 1e-2][1]

    ways = {"start": (1.0, 8**-0.5), "steps": (1 / 8, 8**0.5)}
    part = {name: accuracy_after(*way, seed) for name, way in ways.items()}
    stats["the steps minus the start of the root"] = part["steps"] - part["start"]
    for name, way in ways.items():
        stats[f"the {name} of the root at 0.009"] = accuracy_after(*way, seed, lr=9e-3)

    torch.manual_seed(seed)
    (people, _), layer = phone.draw_rooms(500), RoomLayer(1 / 8)
    for name, steps in (("start", 0), ("trained", 600)):
        rooms = [phone.draw_rooms(32) for _ in range(steps)]
        phone.train_on_rooms(layer, rooms, lr=3e-3)
        scores = layer.W_query(people) @ layer.W_key(people).mT / 8
        stats[f"spread of the scores, {name}"] = scores.std().detach()
    return stats | find_cleo(seed)


def find_cleo(seed):
    """Measure what 04 says of the layer that finds Cleo."""
    torch.manual_seed(seed)
    stats = {}
    finder = nn.Sequential(SelfAttention(38, 64), nn.Linear(64, 6))
    phone.train_on_rooms(finder, [phone.draw_rooms(32) for _ in range(600)], lr=3e-3)
    rooms = phone.draw_rooms(500)
    stats["right in new rooms"] = phone.room_accuracy(finder, rooms)
    for people, num_rooms in ((30, 500), (300, 100)):
        stats[f"right among {people} people"] = phone.room_accuracy(
            finder, phone.draw_rooms(num_rooms, people)
        )
    learned = finder[0]
    A = (learned.W_query.weight.T @ learned.W_key.weight).detach()
    rule = A[16:32, :16].diagonal()
    off_diagonal = (A.square().sum() - rule.square().sum()) / (38 * 38 - 16)
    stats["diagonal over rest"] = rule.mean() / off_diagonal.sqrt()
    parts = {"name": slice(0, 16), "wanted": slice(16, 32), "extension": slice(32, 38)}
    for role in ("query", "key", "value"):
        weight = getattr(learned, f"W_{role}").weight.data
        backup = weight.clone()
        for part, columns in parts.items():
            weight[:, columns] = 0
            stats[f"{role} without {part}"] = phone.room_accuracy(finder, rooms)
            weight.copy_(backup)
    missed = {"query": "wanted", "key": "name", "value": "extension"}
    stats["least right without another part"] = min(
        stats[f"{role} without {part}"]
        for role in missed
        for part in parts
        if part != missed[role]
    )
    return stats
