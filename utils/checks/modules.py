"""Exercises whose answer is a module: built here, judged by its own weights."""

from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import nn

from utils.checks.engine import Exercise, Trial, taken
from utils.checks.guard import Outcome, accepts, attempt, quietly, seeded
from utils.checks.steps import texts_of
from utils.checks.training_facts import dropout_in_eval, without_dropout
from utils.checks.values import safe_text, same_form, shape

FACTS = texts_of(__file__)["FACTS"]
QKV = ("W_query", "W_key", "W_value")


@dataclass(frozen=True, eq=False)
class ModuleExercise(Exercise):
    """An exercise whose answer is an `nn.Module` class.

    A case is `case(x, build=(d_in, d_out, …))`; all cases with the same `build` go
    through one module, in eval mode. The oracle and the mistakes take `(weights, x)`:
    `weights.W_query` … are matrices `(d_in, d_out)` read from the module,
    `weights.build` are the arguments it was built with, `weights.noted` the names of
    what is wrong with it whatever its outputs are. Facts are functions
    `(module, weights) -> Named or None`.
    """

    projections: tuple = QKV

    noun = "class"

    def refuse(self, answer):
        kind = type(answer)
        if issubclass(kind, nn.Module):
            raise FACTS.refusal("instance-not-class", name=kind.__name__)
        if not issubclass(kind, type):
            raise FACTS.refusal("not-a-class", what=safe_text(answer))
        if not issubclass(answer, nn.Module):
            raise FACTS.refusal("not-a-module")
        if not all(accepts(answer, case.settings["build"]) for case in self.cases):
            raise FACTS.refusal("wrong-signature", taken=taken(answer))

    def observe(self, answer, case, memory):
        """Run the module on the case; build it and read its weights if it is new.

        A dropout that is active in eval mode is noted, and the module built without.
        """
        build = case.settings["build"]
        if build not in memory:
            built = made(answer, build)
            if built.error is not None or case.raises is not None:
                return Trial(case, (None, *case.args), built, Outcome())
            weights = read(built.value, build, self.projections)
            noise = attempt(dropout_in_eval, built.value, weights, tidy=lambda n: n)
            if noise.value:
                calm = without_dropout(build)
                built = made(answer, calm)
                weights = read(built.value, calm, self.projections)
                weights.noted.append(noise.value)
            memory[build] = built.value, weights
        module, weights = memory[build]
        outcome, args = seeded(module, case.args), (weights, *case.args)
        expected = quietly(self.oracle, args)
        if type(outcome.value) is tuple and outcome.value:
            count, parts = len(outcome.value), outcome.value
            weights.noted.append(FACTS.name("returns-a-tuple", count=count))
            fitting = (part for part in parts if same_form(part, expected.value))
            outcome.value = next(fitting, parts[0])
        return Trial(case, args, outcome, expected, module)

    def noted(self, memory):
        return [name for _, weights in memory.values() for name in weights.noted]

    def subject(self, answer, memory):
        """Return the module and its weights, for the facts."""
        return next(iter(memory.values()), None)

    def inputs(self, case):
        built = ", ".join(map(safe_text, case.settings["build"]))
        named = super().inputs(case)
        return {f"{self.name}({built}), {name}": x for name, x in named.items()}

    def parameters(self):
        """Return the names of the inputs: the oracle's without the weights."""
        return super().parameters()[1:]


def made(answer, build):
    """Return the outcome of building a module, in eval mode."""
    torch.default_generator.manual_seed(789)
    built = attempt(answer, *build, tidy=lambda module: module)
    if built.error is not None:
        _explain_init(built.error)
    elif "_parameters" not in vars(built.value):
        raise FACTS.refusal("super-init-missing")
    else:
        built.value.eval()
    return built


def read(module, build, projections=QKV):
    """Return the projections as matrices; raise `Refused` where one cannot be read.

    A bias that is not asked for becomes zero.
    """
    weights = SimpleNamespace(build=build, noted=[])
    d_in, d_out = build[:2]
    for name in projections:
        size = (d_out if name == "out_proj" else d_in, d_out)
        matrix, bias = _read(module, name, size)
        setattr(weights, name, matrix)
        setattr(weights, f"{name}_bias", bias)
        if bias is not None and name != "out_proj":
            weights.noted.append(FACTS.name("unasked-bias", name=name))
            getattr(module, name).bias.data.zero_()
    weights.noted += _shared(module, projections)
    return weights


def _read(module, name, size):
    """Return one projection as a matrix of this size, and its bias or None."""
    owned = getattr(module, name, None)
    if isinstance(owned, nn.Module):
        return _read_layer(owned, name, size)
    if not isinstance(owned, torch.Tensor):
        raise FACTS.refusal("projection-missing", name=name, found=_names(module, name))
    if name not in module._parameters:
        raise FACTS.refusal("weights-not-registered", name=name)
    if owned.shape not in (size, size[::-1]):
        raise _other_size(name, size, owned)
    matrix = owned.detach().clone()
    return (matrix if owned.shape == size else matrix.mT), None


def _read_layer(layer, name, size):
    """Send the identity through a layer: linear, so its matrix and bias come out."""
    got = attempt(layer, torch.zeros(1, size[0])), attempt(layer, torch.eye(size[0]))
    if any(outcome.error for outcome in got) or got[1].value.shape != size:
        raise _other_size(name, size, layer)
    if not any(True for _ in layer.parameters()):
        raise FACTS.refusal("weights-not-registered 2", name=name)
    bias = getattr(layer, "bias", None)
    exact = type(layer) is nn.Linear  # the difference below is rounded
    matrix = layer.weight.detach().mT if exact else got[1].value - got[0].value
    return matrix.clone(), None if bias is None else bias.detach().clone()


def _other_size(name, size, owned):
    if isinstance(owned, nn.Linear):
        came = f"nn.Linear({owned.in_features}, {owned.out_features})"
    else:
        came = shape(owned) if isinstance(owned, torch.Tensor) else "another layer"
    return FACTS.refusal("wrong-weight-shape", name=name, size=size, came=came)


def _names(module, name):
    """Return what the module has in place of a projection that is missing."""
    found = [*module._parameters, *module._modules, *module._buffers]
    for held, value in vars(module).items():
        first = value[0] if type(value) in (list, tuple) and value else None
        if isinstance(first, (nn.Module, nn.Parameter)):
            raise FACTS.refusal("modules-in-a-list", held=held, name=name)
    return ", ".join(found) or "no parameters"


def _shared(module, projections):
    """Yield the names of projections that are one matrix."""
    owners = {}
    for name in projections:
        for parameter in _parameters(getattr(module, name)):
            other = owners.setdefault(parameter.data_ptr(), name)
            if other != name:
                yield FACTS.name("shared-weights", other=other, name=name)


def _parameters(owned):
    return owned.parameters() if isinstance(owned, nn.Module) else [owned]


def _explain_init(error):
    if isinstance(error, AttributeError) and "__init__() call" in safe_text(error, 200):
        raise FACTS.refusal("super-init-missing")
