"""Exercises whose answer is a module: built here, judged by its own weights."""

import inspect
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import nn

from utils.checks.engine import Exercise, Named, Trial
from utils.checks.guard import Outcome, accepts, attempt, quietly, seeded
from utils.checks.training_facts import dropout_in_eval
from utils.checks.values import safe_text, shape

NO_SUPER = "nn.Module was not initialised: call super().__init__() first."
QKV = ("W_query", "W_key", "W_value")


@dataclass(frozen=True, eq=False)
class ModuleExercise(Exercise):
    """An exercise whose answer is an `nn.Module` class.

    A case is `case(x, build=(d_in, d_out, …))`; all cases with the same `build` go
    through one module, in eval mode. The oracle and the mistakes take `(weights, x)`:
    `weights.W_query` … are matrices `(d_in, d_out)` read from the module,
    `weights.build` are the arguments it was built with. `facts` are functions
    `(module, weights) -> (slug, text) or None`, asked where all outputs are right.
    """

    projections: tuple = QKV

    noun = "class"

    def refuse(self, answer):
        kind = type(answer)
        if issubclass(kind, nn.Module):
            text = f"Got an instance, {kind.__name__}(…): pass the class itself."
            raise Named("instance-not-class", text)
        if not issubclass(kind, type):
            raise Named("not-a-class", f"Got {safe_text(answer)}.")
        if not issubclass(answer, nn.Module):
            raise Named("not-a-module", "The class does not inherit from nn.Module.")
        if not all(accepts(answer, case.settings["build"]) for case in self.cases):
            taken = attempt(lambda: str(inspect.signature(answer))).value
            raise Named("wrong-signature", f"The class takes {taken}.")

    def observe(self, answer, case, memory):
        """Run the module on the case; build it and read its weights if it is new."""
        build = case.settings["build"]
        if build not in memory:
            torch.default_generator.manual_seed(789)
            built = attempt(answer, *build, tidy=lambda module: module)
            if built.error is not None:
                _explain_init(built.error)
                return Trial(case, case.args, built, Outcome())
            if "_parameters" not in vars(built.value):
                raise Named("super-init-missing", NO_SUPER)
            built.value.eval()
            memory[build] = built.value, read(built.value, build, self.projections)
        module, weights = memory[build]
        outcome = seeded(module, case.args)
        if type(outcome.value) is tuple:
            text = f"The module returns a tuple of {len(outcome.value)}: return the "
            raise Named("returns-a-tuple", text + "output alone.")
        args = (weights, *case.args)
        return Trial(case, args, outcome, quietly(self.oracle, args), module)

    def looks(self, right):
        """Return the facts: those of the exercise ask for right outputs."""
        return (dropout_in_eval, *(self.facts if right else ()))

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


def read(module, build, projections=QKV):
    """Return the module's projections as matrices; raise `Named` where one is wrong."""
    weights = SimpleNamespace(build=build)
    d_in, d_out = build[:2]
    for name in projections:
        size = (d_out if name == "out_proj" else d_in, d_out)
        matrix, bias = _read(module, name, size)
        setattr(weights, name, matrix)
        setattr(weights, f"{name}_bias", bias)
        if bias is not None and name != "out_proj":
            text = f"`{name}` has a bias, and none is asked for: say bias=False."
            raise Named("unasked-bias", text)
    _own_storage(module, projections)
    return weights


def _read(module, name, size):
    """Return one projection as a matrix of this size, and its bias or None."""
    owned = getattr(module, name, None)
    if isinstance(owned, nn.Module):
        return _read_layer(owned, name, size)
    if not isinstance(owned, torch.Tensor):
        raise Named("projection-missing", _names(module, name))
    if name not in module._parameters:
        raise Named(
            "weights-not-registered",
            f"`{name}` is a plain tensor and no parameter, so no optimizer finds it: "
            "use nn.Parameter or nn.Linear.",
        )
    if owned.shape not in (size, size[::-1]):
        raise Named("wrong-weight-shape", _sizes(name, size, owned))
    matrix = owned.detach().clone()
    return (matrix if owned.shape == size else matrix.mT), None


def _read_layer(layer, name, size):
    """Send the identity through a layer: linear, so its matrix and bias come out."""
    got = attempt(layer, torch.zeros(1, size[0])), attempt(layer, torch.eye(size[0]))
    if any(outcome.error for outcome in got) or got[1].value.shape != size:
        raise Named("wrong-weight-shape", _sizes(name, size, layer))
    if not any(True for _ in layer.parameters()):
        raise Named("weights-not-registered", f"`{name}` has no parameter to train.")
    bias = getattr(layer, "bias", None)
    exact = type(layer) is nn.Linear  # the difference below is rounded
    matrix = layer.weight.detach().mT if exact else got[1].value - got[0].value
    return matrix.clone(), None if bias is None else bias.detach().clone()


def _sizes(name, size, owned):
    if isinstance(owned, nn.Linear):
        came = f"nn.Linear({owned.in_features}, {owned.out_features})"
    else:
        came = shape(owned) if isinstance(owned, torch.Tensor) else "another layer"
    return f"`{name}` leads from {size[0]} to {size[1]} features; it is {came}."


def _names(module, name):
    """Return what the module has in place of a projection that is missing."""
    found = [*module._parameters, *module._modules, *module._buffers]
    for held, value in vars(module).items():
        first = value[0] if type(value) in (list, tuple) and value else None
        if isinstance(first, (nn.Module, nn.Parameter)):
            raise Named(
                "modules-in-a-list",
                f"`{held}` is a Python list, so what is in it is not registered: the "
                f"optimizer and state_dict() miss it. Name the matrix `{name}`.",
            )
    return f"The module has no `{name}`, but {', '.join(found) or 'no parameters'}."


def _own_storage(module, projections):
    """Raise `Named` where two projections are one matrix."""
    owners = {}
    for name in projections:
        for parameter in _parameters(getattr(module, name)):
            other = owners.setdefault(parameter.data_ptr(), name)
            if other != name:
                raise Named(
                    "shared-weights",
                    f"`{other}` and `{name}` are one and the same matrix: each "
                    "projection is to learn a matrix of its own.",
                )


def _parameters(owned):
    return owned.parameters() if isinstance(owned, nn.Module) else [owned]


def _explain_init(error):
    if isinstance(error, AttributeError) and "__init__() call" in safe_text(error, 200):
        raise Named("super-init-missing", NO_SUPER)
