"""A reader's answer, ready to be tried: a function, or the modules built from a class."""

from collections import namedtuple
from functools import partial
from inspect import signature
from types import SimpleNamespace

import torch
from torch import nn

from utils.checks.engine.guard import attempt, supervise
from utils.checks.engine.mistakes import Diagnosis
from utils.checks.engine.values import safe_text
from utils.checks.layer_probes import dropout_in_eval, without_dropout

QKV = ("W_query", "W_key", "W_value")
# What PyTorch says of a module that doesn't call `super().__init__()`, or too late.
NOT_BEGUN = "before Module.__init__() call", "has no attribute '_modules'"


class AnswerRejected(Exception):
    """Raised when the object isn't the kind of answer that is asked for."""


class FunctionAnswer:
    """An answer that is a function.

    submitted: the function or class that the reader wrote
    diagnoses: those that are certain whatever the results are
    is_random: whether even without dropout two runs differ
    """

    def __init__(self, answer, exercise):
        if issubclass(type(answer), type) or not callable(answer):
            raise AnswerRejected("not-a-function", f"You passed {safe_text(answer)}.")
        self.submitted, self.diagnoses, self.is_random = answer, [], False
        self.parameters = signature(exercise.right).parameters.values()

    def bind(self, case):
        """Return the answer as a function, and the arguments of a case."""
        return self.call, case.args

    def call(self, *args):
        """Call the answer; what has a default is passed by name, as later cells do."""
        pairs = [*zip(self.parameters, args)]
        keywords = {p.name: arg for p, arg in pairs if p.default is not p.empty}
        return self.submitted(*args[: len(args) - len(keywords)], **keywords)

    def probe_arguments(self):
        """Return what the probes of an exercise take."""
        return (self.submitted,)


class ModuleAnswer:
    """An answer that is an `nn.Module` class; it has the same attributes.

    Cases with the same `build` go through one module, in eval mode. It is judged by its
    own matrices: the right answer takes `learned` and `x`, where `learned.W_query` …
    are matrices `(d_in, d_out)` read from the module, and `learned.build` are the
    arguments that built it, by name. Probes take `(module, learned)`.
    """

    def __init__(self, answer, exercise):
        if not issubclass(type(answer), type) or not issubclass(answer, nn.Module):
            text = f"You passed {safe_text(answer)}: pass a class of yours, without (), based on nn.Module."
            if issubclass(type(answer), nn.Module):
                text = f"You passed an object: pass the class itself, {type(answer).__name__}, without ()."
            raise AnswerRejected("not-a-module", text)
        self.submitted, self.diagnoses = answer, []
        self.projections, self.modules = exercise.projections, {}
        parameters = exercise.class_signature.partition("(")[2].rstrip(")")
        self.build_type, self.is_random = namedtuple("Build", parameters), False

    def bind(self, case):
        """Return the module as a function of `learned` and x, and the arguments."""
        run, learned = self.get_module(case.build)
        return partial(self._call_module, run), (learned, *case.args)

    def probe_arguments(self):
        """Return a module, None if it could not be built, and its `learned`."""
        run, learned = next(iter(self.modules.values()))
        return run.value, learned

    def get_module(self, arguments):
        """Return the run that builds a module in eval mode, and its `learned`.

        If dropout is active in eval mode, note it and build the module again with
        dropout 0.
        """
        if arguments not in self.modules:
            run, learned = self._build_module(arguments)
            noise = attempt(supervise()(dropout_in_eval), run.value, learned).value
            if noise:
                self.diagnoses.append(noise)
                run, learned = self._build_module(without_dropout(learned.build))
                retry = attempt(supervise()(dropout_in_eval), run.value, learned)
                self.is_random |= retry.value is not None
            self.modules[arguments] = run, learned
        return self.modules[arguments]

    def _call_module(self, module_run, learned, x):
        """Return the output of a module for x; raise what building it raised."""
        if module_run.error is not None:
            raise module_run.error
        return module_run.value(x)

    def _build_module(self, arguments):
        """Return the run that builds a module in eval mode, and its `learned`."""
        torch.default_generator.manual_seed(789)
        run = attempt(supervise()(lambda: self.submitted(*arguments).eval()))
        if any(words in str(run.error) for words in NOT_BEGUN):
            text = "Your __init__ doesn't call super().__init__() first: put that line at its top. Until it has run, PyTorch has nowhere to store layers and weights."
            raise AnswerRejected("super-init-missing", text)
        return run, self.read_weights(run.value, arguments)

    def read_weights(self, module, arguments):
        """Return `learned`: what the module holds; an unasked bias becomes zero."""
        build, owners = self.build_type(*arguments), {}
        learned = SimpleNamespace(build=build)
        for name in () if module is None else self.projections:
            layer = getattr(module, name, None)
            bias = getattr(layer, "bias", None)
            if isinstance(bias, torch.Tensor) and name != "out_proj":
                self.diagnoses.append(Diagnosis("unasked-bias", f"Your `{name}` has a bias: none of the three projections should have one, so pass bias=False to each."))  # fmt: skip
                bias.data.zero_()
            num_inputs = build.d_out if name == "out_proj" else build.d_in
            setattr(learned, name, read_matrix(layer, name, (num_inputs, build.d_out)))
            bias = bias.detach().float() if isinstance(bias, torch.Tensor) else None
            setattr(learned, f"{name}_bias", bias)
            owner = owners.setdefault(getattr(layer, "weight", layer), name)
            if owner != name:
                self.diagnoses.append(Diagnosis("shared-weights", f"Your `{owner}` and `{name}` are the same matrix. Make two."))  # fmt: skip
        return learned


def read_matrix(layer, name, size):
    """Return a projection as a matrix of this size; raise `AnswerRejected` otherwise.

    A layer is linear, so what it returns for the identity is its matrix (and its bias).
    """
    if isinstance(layer, nn.Parameter):
        matrix = layer.detach() if layer.shape == size else layer.detach().mT
    elif isinstance(layer, nn.Module):
        dtype = next((p.dtype for p in layer.parameters()), torch.float32)
        bias = attempt(supervise()(layer), torch.zeros(1, size[0], dtype=dtype)).value
        output = attempt(supervise()(layer), torch.eye(size[0], dtype=dtype)).value
        matrix = torch.zeros(0) if output is None else (output - bias).detach()
    else:
        text = f"Your module has no `{name}` that an optimizer finds: self.{name} = "
        raise AnswerRejected("projection-missing", f"{text}nn.Linear(…).")
    if matrix.shape != size:
        text = f"Your `{name}` should lead from {size[0]} to {size[1]} features."
        raise AnswerRejected("wrong-weight-shape", text)
    return matrix.float().clone()
