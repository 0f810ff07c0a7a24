"""Notebook 04 and its deeper one: learning with and without the root."""

import torch

from tests.seeds import definitions
from utils.experiments.rooms import (
    RoomLayer,
    draw_rooms,
    room_accuracy,
    train_on_rooms,
)


def main(seed):
    found, scales = {}, {"with": 1 / 8, "without": 1.0}
    book = definitions("deeper/why_the_root")
    train_room_layer, accuracy_after = book["train_room_layer"], book["accuracy_after"]
    for root, scale in scales.items():
        _, found[f"new rooms at each step, {root}"] = train_room_layer(
            scale, 19_200, 3e-3, seed
        )
    few = {
        (root, lr): train_room_layer(scale, 256, lr, seed)
        for root, scale in scales.items()
        for lr in (3e-3, 1e-2)
    }
    found["256 rooms, without"] = few["without", 3e-3][1]
    found["256 rooms, with"] = few["with", 3e-3][1]
    for root in scales:
        found[f"256 rooms at 0.01, {root}"] = few[root, 1e-2][1]

    ways = {"start": (1.0, 8**-0.5), "steps": (1 / 8, 8**0.5)}
    part = {name: accuracy_after(*way, seed) for name, way in ways.items()}
    found["the steps minus the start of the root"] = part["steps"] - part["start"]
    for name, way in ways.items():
        found[f"the {name} of the root at 0.009"] = accuracy_after(*way, seed, lr=9e-3)

    torch.manual_seed(seed)
    (people, answers), layer = draw_rooms(500), RoomLayer(1 / 8)
    for name, steps in (("start", 0), ("trained", 600)):
        train_on_rooms(layer, [draw_rooms(32) for _ in range(steps)], lr=3e-3)
        scores = layer.W_query(people) @ layer.W_key(people).mT / 8
        found[f"spread of the scores, {name}"] = scores.std().detach()
    found["right in new rooms"] = room_accuracy(layer, (people, answers))
    M = (layer.W_query.weight.T @ layer.W_key.weight).detach()
    rule = M[16:32, :16].diagonal()
    rest = (M.square().sum() - rule.square().sum()) / (38 * 38 - 16)
    found["diagonal over rest"] = rule.mean() / rest.sqrt()
    size = layer.W_value.weight.detach().abs().mean(dim=0)
    found["W_value: extension over names"] = size[32:].mean() / size[:32].mean()

    torch.manual_seed(4)  # the sentence of the notebook, read by this layer
    name, wanted = torch.randn(6, 16), torch.zeros(6, 16)
    wanted[0], wanted[4] = name[1], name[5]
    sentence = torch.cat([name, wanted, torch.eye(6)], dim=-1)
    scores = layer.W_query(sentence) @ layer.W_key(sentence).T / 8
    weights = scores.softmax(dim=-1).detach()
    found["our sentence, weight of the noun"] = min(weights[0, 1], weights[4, 5])
    return found
