"""What notebook 11 states after training, measured with any seed."""

import ast
import json
from pathlib import Path

import torch
from sklearn.datasets import load_digits

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "11_beyond_text.ipynb"
CONSTANTS = {"STEM", "LENGTH", "MASK"}


def definitions():
    """Execute the imports, definitions and sizes of the notebook; return their names.

    A stub is replaced by the definition that follows it.
    """
    namespace = {"__name__": "notebook"}
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] != "code" or "setup" in cell["metadata"].get("tags", []):
            continue
        for node in ast.parse("".join(cell["source"])).body:
            kinds = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            is_size = isinstance(node, ast.Assign) and names & CONSTANTS
            if isinstance(node, kinds) or (is_size and names <= CONSTANTS | {"LOOP"}):
                exec(compile(ast.unparse(node), NOTEBOOK.name, "exec"), namespace)
    return namespace


def main(seed):
    """Train the five models; return name -> (measured, lowest, highest allowed)."""
    book, digits = definitions(), load_digits()
    images = torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16
    shuffled = torch.randperm(
        len(images), generator=torch.Generator().manual_seed(seed)
    )
    book["labels"] = torch.tensor(digits.target)
    book["known"], book["held_out"] = shuffled[:1500], shuffled[1500:]
    tokens = book["patchify"](images, 2)
    torn = images.reshape(len(images), 16, 4)
    share = {
        name: book["accuracy"](book["train_on"](cut, places, seed), cut)
        for name, cut, places in [
            ("digits, patches", tokens, True),
            ("digits, plain reshape", torn, True),
            ("digits, no positions", tokens, False),
        ]
    }
    limits = [(0.95, 1.0), (0.94, 1.0), (0.3, 0.85)]
    found = {name: (share[name], *limit) for name, limit in zip(share, limits)}

    stem, length = book["STEM"], book["LENGTH"]
    folded, one_way = (book["train_reader"](causal, seed) for causal in (False, True))
    torch.manual_seed(seed + 100)
    strands = book["hairpins"](500)
    both = book["named"](folded, strands)
    causal = book["named"](one_way, strands)
    arms = torch.cat((both[:stem], both[-stem:]))
    loop = both[stem : length - stem]
    found["hairpins, worst place in the stem"] = (arms.min().item(), 0.95, 1.0)
    found["hairpins, best place in the loop"] = (loop.max().item(), 0.15, 0.4)
    found["causal, worst place of the second arm"] = (
        causal[-stem:].min().item(),
        0.95,
        1.0,
    )
    found["causal, best place of the first arm"] = (
        causal[:stem].max().item(),
        0.15,
        0.4,
    )
    shifted = book["named"](folded, strands.roll(1, dims=1)).mean().item()
    found["hairpins shifted by one place"] = (shifted, 0.15, 0.4)
    hidden = book["hide_each"](strands[:50])
    with torch.no_grad():
        weights = book["weights_of"](folded.block, folded.embed(hidden))
    weights = weights[:, 0].view(50, length, length, length)
    pairs = weights.diagonal(dim1=1, dim2=2).mean(dim=0).T
    places = torch.arange(length)
    partner = pairs[places, length - 1 - places]
    worst = torch.cat((partner[:stem], partner[-stem:])).min().item()
    found["hairpins, least weight on a partner"] = (worst, 0.5, 1.0)
    return found


if __name__ == "__main__":
    for seed in (0, 1, 2):
        for name, (measured, lowest, highest) in main(seed).items():
            state = "holds" if lowest <= measured <= highest else "FAILS"
            print(f"seed {seed}  {state}  {name}: {measured:.2f}")
