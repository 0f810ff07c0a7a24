"""What the tests of the clinic share: patients, what is measured on them, inputs."""

import nbformat
import torch
from repository import ROOT

from utils import attention
from utils.clinic.instruments import INSTRUMENTS, measured
from utils.clinic.patients import KINDS

KIND_OF = {kind.letter: kind for kind in KINDS}
ONE_OF_EACH = 7, 107, 207  # a function, one head, four heads
NOTEBOOK = ROOT / "notebooks/12_the_clinic.ipynb"


def readings(layer):
    """Return what every instrument prints of a layer, training left out."""
    fitting = [n for n, i in INSTRUMENTS.items() if layer.kind.masked or not i.masked]
    return {
        (name, label): value
        for name in fitting
        for label, value in measured(layer, name).items()
    }


def code_cells():
    """Return the code cells of the notebook."""
    cells = nbformat.read(NOTEBOOK, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def some(generator, layer, tokens=5):
    """Return random inputs of a layer."""
    count = 1 if layer.kind.masked else 3
    shape = 2, tokens, layer.kind.build[0]
    return [torch.randn(*shape, generator=generator) for _ in range(count)]


def of_the_course(layer):
    """Return the course's own layer with the weights of a layer with a mask."""
    if layer.kind is KIND_OF["h"]:
        own = attention.MultiHeadAttention(64, 64, 16, 0.0, 4)
    else:
        own = attention.CausalAttention(16, 16, 16, 0.0)
    own.load_state_dict(layer.state_dict())
    return own.eval()
