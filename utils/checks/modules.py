"""Exercises whose answer is a module: built here, judged by its own weights."""

from dataclasses import dataclass
from types import SimpleNamespace

import torch
from torch import nn

from utils.checks.engine import Exercise, parameters_of
from utils.checks.guard import accepts, attempt, quietly, seeded
from utils.checks.pipeline import AnswerRejected, Diagnosis
from utils.checks.runs import Run
from utils.checks.training_facts import dropout_in_eval, without_dropout
from utils.checks.values import safe_text, same_form, shape

QKV = ("W_query", "W_key", "W_value")


@dataclass(eq=False)
class ModuleExercise(Exercise):
    """An exercise whose answer is an `nn.Module` class.

    A case is `case(x, build=(d_in, d_out, …))`; all cases with the same `build` go
    through one module, in eval mode. The oracle and the variants take `(weights, x)`:
    `weights.W_query` … are matrices `(d_in, d_out)` read from the module, and
    `weights.build` the arguments it was built with. Facts are functions
    `(module, weights) -> Diagnosis or None`.
    """

    projections: tuple = QKV

    noun = "class"

    def prepare(self, answer):
        """Return the `Modules` that cases build of the class."""
        kind = type(answer)
        if issubclass(kind, nn.Module):
            text = f"You passed an instance, {kind.__name__}(…): pass the class itself."
            raise AnswerRejected("instance-not-class", text)
        if not issubclass(kind, type):
            raise AnswerRejected("not-a-class", f"You passed {safe_text(answer)}.")
        if not issubclass(answer, nn.Module):
            text = "Your class doesn't inherit from nn.Module."
            raise AnswerRejected("not-a-module", text)
        if not all(accepts(answer, case.build) for case in self.cases):
            text = f"Your class takes {parameters_of(answer)}."
            raise AnswerRejected("wrong-signature", text)
        return Modules(answer, self.projections)

    def run_case(self, answer, case):
        """Run a module on the case, built before or now."""
        if case.raises is not None:
            return Run(case, (None, *case.args), answer.make(case.build), None, None)
        if case.build not in answer.built:
            outcome = answer.build(case.build)
            if outcome.error is not None:
                return Run(case, (None, *case.args), outcome, None, None)
        module, weights = answer.built[case.build]
        outcome, args = seeded(module, case.args), (weights, *case.args)
        expected = quietly(self.oracle, args).value
        if type(outcome.value) is tuple and outcome.value:
            answer.found("returns-a-tuple", "Your module returns a tuple.", RETURN_ONE)
            fitting = (part for part in outcome.value if same_form(part, expected))
            outcome.value = next(fitting, outcome.value[0])
        return Run(case, args, outcome, expected, module)

    def known_before(self, answer):
        return answer.diagnoses

    def fact_arguments(self, answer):
        """Return the module and its weights, for the facts."""
        built = answer.built if isinstance(answer, Modules) else {}
        return next(iter(built.values()), None)

    def inputs(self, case):
        built = ", ".join(map(safe_text, case.build))
        named = super().inputs(case)
        return {f"{self.name}({built}), {name}": x for name, x in named.items()}

    def parameters(self):
        """Return the names of the inputs: the oracle's without the weights."""
        return super().parameters()[1:]


RETURN_ONE = "Return only the output."


class Modules:
    """The modules built of a class, and what is wrong whatever their outputs are.

    built: arguments -> (module, weights)
    diagnoses: a list of `Diagnosis`
    """

    def __init__(self, kind, projections):
        self.kind, self.projections = kind, projections
        self.built, self.diagnoses = {}, []

    def found(self, name, fault, rule):
        self.diagnoses.append(Diagnosis(name, f"{fault} {rule}"))

    def build(self, arguments):
        """Build a module and read its weights; return the outcome.

        One whose dropout is active in eval mode is reported, and built without.
        """
        outcome = self.make(arguments)
        if outcome.error is not None:
            return outcome
        weights = self._read(outcome.value, arguments)
        noise = attempt(dropout_in_eval, outcome.value, weights, tidy=lambda d: d)
        if noise.value:
            self.diagnoses.append(noise.value)
            calm = without_dropout(arguments)
            outcome = self.make(calm)
            weights = self._read(outcome.value, calm)
        self.built[arguments] = outcome.value, weights
        return outcome

    def make(self, arguments):
        """Return the outcome of building a module, in eval mode."""
        torch.default_generator.manual_seed(789)
        made = attempt(self.kind, *arguments, tidy=lambda module: module)
        forgotten = "__init__() call" in safe_text(made.error, 200)
        if (
            isinstance(made.error, AttributeError)
            and forgotten
            or (made.error is None and "_parameters" not in vars(made.value))
        ):
            text = "You didn't initialise nn.Module: call super().__init__() first."
            raise AnswerRejected("super-init-missing", text)
        if made.error is None:
            made.value.eval()
        return made

    def _read(self, module, arguments):
        """Return the weights as matrices; a bias that isn't asked for becomes zero."""
        weights, (d_in, d_out) = SimpleNamespace(build=arguments), arguments[:2]
        for name in self.projections:
            size = (d_out if name == "out_proj" else d_in, d_out)
            matrix, bias = read_projection(module, name, size)
            setattr(weights, name, matrix)
            setattr(weights, f"{name}_bias", bias)
            if bias is not None and name != "out_proj":
                fault = f"Your `{name}` has a bias, and none is asked for."
                self.found("unasked-bias", fault, "Use bias=False.")
                getattr(module, name).bias.data.zero_()
        owners = {}
        for name in self.projections:
            for parameter in _parameters(getattr(module, name)):
                other = owners.setdefault(parameter.data_ptr(), name)
                if other != name:
                    fault = f"Your `{other}` and `{name}` are the same matrix."
                    rule = "Give each projection a matrix of its own."
                    self.found("shared-weights", fault, rule)
        return weights


def read_weights(module, arguments, projections=QKV):
    """Return the weights of a module that was built elsewhere."""
    return Modules(type(module), projections)._read(module, arguments)


def read_projection(module, name, size):
    """Return one projection as a matrix of this size, and its bias or None.

    Raises `AnswerRejected` where it cannot be read.
    """
    owned = getattr(module, name, None)
    if isinstance(owned, nn.Module):
        return _read_layer(owned, name, size)
    if not isinstance(owned, torch.Tensor):
        _explain_missing(module, name)
    if name not in module._parameters:
        text = f"Your `{name}` is a plain tensor, so no optimizer finds it: use "
        raise AnswerRejected("weights-not-registered", f"{text}nn.Linear.")
    if owned.shape not in (size, size[::-1]):
        raise _other_size(name, size, shape(owned))
    matrix = owned.detach().clone()
    return (matrix if owned.shape == size else matrix.mT), None


def _read_layer(layer, name, size):
    """Send the identity through a layer: linear, so its matrix and bias come out."""
    got = attempt(layer, torch.zeros(1, size[0])), attempt(layer, torch.eye(size[0]))
    if any(outcome.error for outcome in got) or got[1].value.shape != size:
        linear = type(layer) is nn.Linear
        sizes = f"{layer.in_features}, {layer.out_features}" if linear else "…"
        raise _other_size(name, size, f"{type(layer).__name__}({sizes})")
    if not any(True for _ in layer.parameters()):
        text = f"Your `{name}` has no parameter to train."
        raise AnswerRejected("weights-not-registered", text)
    bias = getattr(layer, "bias", None)
    exact = type(layer) is nn.Linear  # the difference below is rounded
    matrix = layer.weight.detach().mT if exact else got[1].value - got[0].value
    return matrix.clone(), None if bias is None else bias.detach().clone()


def _other_size(name, size, came):
    text = f"Your `{name}` is {came}: it should lead from {size[0]} to {size[1]} "
    return AnswerRejected("wrong-weight-shape", f"{text}features.")


def _explain_missing(module, name):
    """Raise an error that says what the module has instead of a projection."""
    for attribute, value in vars(module).items():
        first = value[0] if type(value) in (list, tuple) and value else None
        if isinstance(first, (nn.Module, nn.Parameter)):
            text = f"`{attribute}` is a Python list, so the optimizer and state_dict() "
            text += f"miss what is in it: name the matrix `{name}`."
            raise AnswerRejected("modules-in-a-list", text)
    names = [*module._parameters, *module._modules, *module._buffers]
    text = f"Your module has no `{name}`, but {', '.join(names) or 'no parameters'}."
    raise AnswerRejected("projection-missing", text)


def _parameters(owned):
    return owned.parameters() if isinstance(owned, nn.Module) else [owned]
