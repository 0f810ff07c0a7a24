"""What the tests of the checks share: all exercises, and answers to them."""

from torch import nn

from utils.checks.catalogue import exercises
from utils.checks.submission import ModuleAnswer

EXERCISES = {id: e for id, e in exercises().items() if not e.same_as}


def answer_from(exercise, compute):
    """Return an answer that gives what `compute` gives, a function or a module."""
    if exercise.kind == "function":
        return lambda *args, **named: compute(*args, *named.values())

    class Module(nn.Module):
        def __init__(self, *build):
            super().__init__()
            self.build = build
            for name in exercise.projections:
                wide = build[1] if name == "out_proj" else build[0]
                bias = name == "out_proj"
                self.add_module(name, nn.Linear(wide, build[1], bias=bias))

        def forward(self, x):
            answer = ModuleAnswer(Module, exercise)
            return compute(answer.read_weights(self, self.build), x)

    return Module
