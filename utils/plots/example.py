"""The running example in numbers: three words on their way through a GPT.

The vectors are those of notebook 03. The weights of the layers are small numbers of our
choice, so that the two heads differ; everything else is computed from them.
"""

import torch
from torch.nn import functional as F

from utils.tokenizer import load_tokenizer

TEXT = "Hello shiny sun"
BEYOND_TEXT = "an image,\na strand of DNA,\nsentences"
INPUTS = torch.tensor(
    [[0.34, 0.22, 0.54], [0.53, 0.34, 0.98], [0.29, 0.54, 0.93]], dtype=torch.double
)
POSITIONS = torch.tensor(
    [[0.1, 0.0, 0.1], [0.2, 0.1, 0.0], [0.0, 0.2, 0.1]], dtype=torch.double
)
# In notebook 08 the keys and values come from another text.
OTHER_TEXT = "Bonjour soleil"
OTHER = torch.tensor([[0.5, 0.1, 0.2], [0.7, 0.9, 0.8]], dtype=torch.double)
# W_query, W_key and W_value of each head: the first looks back, the second at itself.
HEADS = torch.tensor(
    [
        [
            [[-2, 2], [2, -2], [2, 2]],
            [[3, 2], [1, -1], [0, -2]],
            [[1, 0], [0, 2], [1, -1]],
        ],
        [
            [[2, 0], [1, 0], [1, 1]],
            [[0, -1], [2, 0], [1, -1]],
            [[-1, 1], [1, 1], [0, 0]],
        ],
    ],
    dtype=torch.double,
)
OUT_PROJ = torch.tensor(
    [[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, -1, 0]], dtype=torch.double
)
MLP = torch.tensor([[1, 0, -1], [0, 2, 1], [1, 1, 0]], dtype=torch.double)
NEXT_WORDS = ("!", "·sun", "·shiny", "Hello")
TO_WORDS = torch.tensor(
    [[1, 1, -1, 0], [-1, 1, 0, 0], [-1, 1, 1, 2]], dtype=torch.double
)


def token_ids():
    """Return the pieces of the text and their ids in GPT-2's vocabulary."""
    tokenizer = load_tokenizer()
    ids = tokenizer.encode(TEXT)
    return [tokenizer.decode([i]) for i in ids], ids


def steps(notebook, other_text=False):
    """Return by name what the stations hold at the end of a notebook, a whole number.

    Words are compared with words until 04 brings queries, keys and values; from 05 on
    the future is masked. `other_text`: keys and values come from the other text, as in
    08.
    """
    source = OTHER if other_text else INPUTS
    projections = HEADS if notebook >= 4 else [None]
    causal = notebook >= 5 and not other_text
    heads = [_attend(INPUTS, source, matrices, causal) for matrices in projections]
    return {
        **heads[0],
        "embeddings": INPUTS - POSITIONS,
        "positions": POSITIONS,
        "inputs": INPUTS,
        "heads": heads,
        "notebook": notebook,
    }


def _attend(x, source, matrices, causal):
    """Return each step of one head; without matrices the words stand for themselves."""
    query, key, value, scale = x, source, source, 1
    if matrices is not None:
        query, key, value = x @ matrices[0], source @ matrices[1], source @ matrices[2]
        scale = key.shape[-1] ** 0.5
    scores = query @ key.T / scale
    mask = torch.ones_like(scores, dtype=torch.bool)
    mask = mask.tril() if causal else mask
    weights = torch.softmax(scores.masked_fill(~mask, float("-inf")), dim=-1)
    return {
        "query": query,
        "key": key,
        "value": value,
        "scores": scores,
        "mask": mask,
        "weights": weights,
        "context": weights @ value,
    }


def next_token():
    """Return the probabilities of what follows the text: one block and a last layer."""
    x = F.layer_norm(INPUTS, (3,))
    heads = [_attend(x, x, matrices, True)["context"] for matrices in HEADS]
    x = INPUTS + torch.cat(heads, dim=-1) @ OUT_PROJ
    x = x + F.gelu(F.layer_norm(x, (3,)) @ MLP)
    return torch.softmax(F.layer_norm(x, (3,))[-1] @ TO_WORDS, dim=-1)
