"""Notebook 04 and its deeper one: learning with and without the root."""

import torch

from utils.experiments.rooms import RoomLayer, draw_rooms, train_room_layer


def main(seed):
    _, own, without = train_room_layer(1.0, 3e-3, seed)
    _, _, with_root = train_room_layer(1 / 8, 3e-3, seed)
    found = {
        "own minus new rooms": own - without,
        "at 0.003, with minus without": with_root - without,
        "at 0.01, without": train_room_layer(1.0, 1e-2, seed)[2],
    }
    trained, _, found["at 0.01, with"] = train_room_layer(1 / 8, 1e-2, seed)
    M = (trained.W_query.weight.T @ trained.W_key.weight).detach()
    rule = M[16:32, :16].diagonal()
    rest = (M.square().sum() - rule.square().sum()) / (38 * 38 - 16)
    found["diagonal over rest"] = rule.mean() / rest.sqrt()

    torch.manual_seed(seed)
    x, _ = draw_rooms(500)
    for name, layer in (("start", RoomLayer(1 / 8)), ("trained", trained)):
        scores = layer.W_query(x) @ layer.W_key(x).mT / 8
        found[f"spread of the scores, {name}"] = scores.std()
    return found
