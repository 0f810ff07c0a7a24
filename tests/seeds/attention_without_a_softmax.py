"""What notebook 15 and its deeper one state of trainings, measured with any seed."""

from functools import partial

from torch.nn.functional import normalize

from tests.seeds import definitions


def main(seed):
    book, found = definitions("15_attention_without_a_softmax"), {}
    recall = book["recall"]
    stacks = definitions("deeper/a_layer_with_the_delta_rule")["STACKS"]

    for name, width in (("softmax", 8), ("sum", 8), ("sum", 16)):
        shares = recall.recalled_after_training(book[f"read_{name}"], width, seed)
        found[f"letters differ: {name}, width {width}"] = shares[-1]
    for beta in (1.0, 0.25):
        read = partial(book["read_delta"], beta=beta)
        shares = recall.recalled_after_training(read, 8, seed)
        found[f"letters differ: delta rule, width 8, beta {beta}"] = shares[-1]
    shares = recall.recalled_after_training(book["read_sum"], 8, seed, steps=5400)
    found["letters differ: sum, width 8, 5,400 steps"] = shares[-1]
    rules, readers = book["RULES"], {}
    for name, rule in rules.items():
        readers[name], shares = recall.followed_after_training(rule, seed)
        for what, share in zip(("a digit", "none", "none, silent sign"), shares):
            found[f"{what}: {name}"] = share
    *letters, sign = readers["both"].gates()
    found |= {"gate: a letter": sum(letters) / 8, "gate: the sign": sign}
    query, key = readers["correct"].query.weight, readers["correct"].key.weight
    products = normalize(query) @ normalize(key[8:]).T  # with that of the sign
    found["correct: least product of the sign and a letter"] = products.abs().min()
    _, shares = recall.followed_after_training(rules["correct"], seed, steps=1800)
    found["a digit: correct, 1,800 steps"] = shares[0]
    found["none: correct, 1,800 steps"] = shares[1]
    for task, letters in (("letters differ", None), ("letters return", 8)):
        for name, kinds in stacks.items():
            shares = recall.recalled_by_layers(kinds, letters, seed)
            found[f"{task}: layers {name}"] = shares[-1]
    shares = recall.recalled_by_layers(stacks["delta, delta"], None, seed, steps=5400)
    found["letters differ: layers delta, delta, 5,400 steps"] = shares[-1]
    return found
