"""What a notebook builds and what `utils` offers under the same name is one function.

The imports, constants and definitions of every notebook, and of the solutions folded in
its text, are executed in order. If the library also has the name of a definition, both
must pass the check of the exercise, or give the same in a case below.
"""

import ast
import functools
import importlib
import pkgutil
from contextlib import suppress
from functools import partial

import nbformat
import pytest
import torch
from torch.nn import Linear

import utils
from tests import small_layers
from tests.every_exercise import EXERCISES
from tests.markdown_text import folded_solution
from tests.notebooks import find_notebooks, is_setup
from tests.repository import ROOT, as_python
from utils.checks.catalogue import exercises
from utils.checks.examine import examine
from utils.data import load_text
from utils.latent import LatentAttention
from utils.pages import definitions as page_definitions
from utils.pages import is_constant, takes_answer

NOTEBOOKS = find_notebooks()
LayerCache = page_definitions("09_attention_at_speed").LayerCache

random = partial(small_layers.random, dtype=torch.float32)


def layer(*sizes, x):
    """Build a layer under a seed; its output shows its weights and their order."""

    def case(cls):
        torch.manual_seed(123)
        built = cls(*sizes)
        return built.eval()(x), {name: p.shape for name, p in built.named_parameters()}

    return case


def parts():
    """Return three parts: one is empty for the first token, all for the last one."""
    maxima, sums = random(3, 5), random(3, 5, seed=1).exp()
    maxima[0, 0] = maxima[:, -1] = float("-inf")
    sums = sums.masked_fill(maxima.isinf(), 0.0)
    return sums[..., None] * random(3, 5, 2, seed=2), maxima, sums


def model(cls):
    """Return what the model computes with other weights: in `utils` some begin small.

    That is the subject of deeper/norms_and_depth.
    """
    built = cls(11, 5, 8, 2, 3)
    for i, parameter in enumerate(built.parameters()):
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(i))
    return built.eval()(IDS), {n: p.shape for n, p in built.named_parameters()}


def latent_steps(cls):
    """Return what the layer computes token by token, with the page's cache or its own.

    The library's layer does more, and so takes more sizes.
    """
    sizes = {"num_heads": 2, "latent_dim": 3, "rotary_dim": 2}
    if cls is LatentAttention:
        sizes |= {"context_length": 5, "dropout": 0.0, "rotary": True}
    built = cls(6, 8, **sizes).requires_grad_(False)
    parameters = sorted(built.named_parameters())
    for i, (_, parameter) in enumerate(parameters):
        torch.nn.init.normal_(parameter, generator=torch.Generator().manual_seed(i))
    cache = built.new_cache(5) if cls is LatentAttention else LayerCache()
    steps = [built(x, cache=cache) for x in random(2, 5, 6).split(1, dim=1)]
    return torch.cat(steps, dim=1), {name: p.shape for name, p in parameters}


TEXT = "low lower lowest slow slower aaaa, a low blow: 10 20 10 20 naïve\n\nlow"
MERGES = {(ord("l"), ord("o")): 256, (256, ord("w")): 257, (ord(" "), 257): 258}
LINEAR = Linear(6, 6)
IDS = torch.tensor([[2, 0, 4], [1, 1, 3]])

# What no exercise asks for. An exercise is also here if its check, which loads weights,
# doesn't see in which order a module draws them.
CASES = {
    "count_pairs": lambda f: f({(1, 2, 1): 3, (2, 1): 1, (5,): 2}),
    "train_bpe": lambda f: [[*f(t, 60).items()] for t in (TEXT, load_text()[:3000])],
    "encode_bpe": lambda f: f(TEXT, MERGES),
    "TokenAndPositionEmbedding": layer(11, 5, 3, x=IDS),
    "dropout": lambda f: (torch.manual_seed(0), f(random(5, 3), 0.3))[1],
    "partial_attention": lambda f: f(random(5, 3), random(7, 3), random(7, 2, seed=2)),
    "merge_parts": lambda f: functools.reduce(f, zip(*parts())),
    "feed_forward": layer(6, x=random(2, 5, 6)),
    "TransformerBlock": layer(LINEAR, LINEAR, 6, x=random(2, 5, 6)),
    "SwiGLU": layer(6, x=random(2, 5, 6)),
    "Llama": lambda f: layer(11, 5, 8, 2, 3, x=IDS)(partial(f, d_inner=12, tied=False)),
    "interleave_halves": lambda f: f(random(12, 5), 2),
    "GPT": model,
    "LatentAttention": latent_steps,
    "next_token_loss": lambda f: f(LINEAR, (random(2, 3, 6), IDS)),
    "answer_loss": lambda f: f(LINEAR, (random(2, 3, 6), IDS)),
    "is_right": lambda f: f(LINEAR, (random(2, 3, 6), IDS)),
    "leak_test": lambda f: f(torch.nn.Softmax(dim=1), random(2, 5, 6)),
}


def public_names():
    """Map each public name of the library to what is defined under it."""
    definitions = {}
    names = [m.name for m in pkgutil.iter_modules(utils.__path__) if not m.ispkg]
    for module in (importlib.import_module(f"utils.{name}") for name in names):
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) == module.__name__:
                if not name.startswith("_"):
                    definitions[name] = value
    return definitions


def is_stub(definition):
    return "NotImplementedError" in ast.unparse(definition)


def is_definition(node):
    return isinstance(node, ast.FunctionDef | ast.ClassDef)


def statements(notebook):
    """Yield the statements of a notebook's code and of its folded solutions."""
    for cell in nbformat.read(notebook, as_version=4).cells:
        if cell.cell_type == "code" and not is_setup(cell):
            yield from ast.parse(as_python(cell.source)).body
        elif solution := folded_solution(cell):
            yield from ast.parse(solution).body


def twins_in(notebook):
    """Execute a notebook's imports, constants and definitions; yield the twins."""
    namespace, twins = {"__name__": "notebook"}, public_names()
    for node in statements(notebook):
        code = compile(ast.unparse(node), notebook.name, "exec")
        if isinstance(node, ast.Import | ast.ImportFrom) or is_definition(node):
            exec(code, namespace)
        elif is_constant(node) or takes_answer(node):
            with suppress(NameError):  # it may need what was computed before it
                exec(code, namespace)
        if is_definition(node) and node.name in twins and not is_stub(node):
            yield node.name, namespace[node.name], twins[node.name]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_definition_of_a_notebook_is_the_function_of_utils(notebook):
    in_the_hour = [e for e in exercises().values() if e.page == notebook.stem]
    asked = {e.name: e for e in [*EXERCISES.values(), *in_the_hour]}
    for name, built, twin in twins_in(notebook):
        assert name in asked | CASES, f"{name} has a twin in utils but no case here"
        if name in asked:
            exercise = asked[name]
            for function in (
                [built] if exercise.counts_as != exercise.name else [built, twin]
            ):
                result = examine(exercise, function)
                assert result.passed, result.message
        if name in CASES:
            torch.testing.assert_close(
                CASES[name](built), CASES[name](twin), msg=lambda m, n=name: f"{n}: {m}"
            )
