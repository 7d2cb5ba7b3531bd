"""What a challenge asks of an answer: a list of steps in plain JSON, and the tensors they use.

A plan is written by an exercise (`encoder_grader/exercises/`), carried out by `collect` beside the learner's code, and
read again by `judge`. It holds no code, so that it can cross a process boundary as JSON and safetensors.
"""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

LONGEST_SUBJECT = 70  # characters
MOST_ARGUMENTS = 6  # that a message shows of a list


def pick(draw: torch.Generator, low: int, high: int) -> int:
    """A size from `low` to `high`, both included; sizes that change with the seed cannot be learned by heart."""
    return int(torch.randint(low, high + 1, (), generator=draw))


@dataclass(frozen=True)
class Ref:
    """The result of an earlier step, to be used by a later one."""

    step: int


class Plan:
    """A challenge under construction: each method adds one step and returns a `Ref` to its result.

    Args:
        watch: names of the functions this exercise asks the learner to write; a call of one of them is recorded.

    What stays with the grader, and no step holds: `given`, the callables behind the names that steps use, and `hidden`,
    whatever the claims need to read the results (which candidate of a bug hunt has which bug).

    Give a step a `label` when a claim will look at its result. Tensors that are passed to a call directly are
    stored under a number, once; `tensor` gives them a name that messages can use.
    """

    def __init__(self, watch: tuple[str, ...] = ()):
        self.steps: list[dict] = []
        self.tensors: dict[str, Tensor] = {}
        self.watch = list(watch)
        self.given: dict[str, Callable] = {}
        self.hidden: dict = {}
        self._subjects: list[str] = []  # each step in words, without its mode and how often it is looked at
        self._looked_at = Counter()  # how often a call of these words is one that a claim looks at
        self._modes: list[tuple[int, str]] = []  # which module was put into which mode, and the results made in it
        self._passed: dict[int, tuple[Tensor, Ref]] = {}  # by id, the tensors passed to a call directly

    def tensor(self, name: str, value: Tensor, requires_grad: bool = False) -> Ref:
        """An input, known to messages as `name`; every use gets the same fresh copy of it."""
        if name in self.tensors:
            raise ValueError(f"the plan already has a tensor named {name!r}; give each its own name")
        self.tensors[name] = value.detach().clone()
        return self._add("tensor", name, None, key=name, requires_grad=requires_grad)

    def name(self, name: str, label: str | None = None) -> Ref:
        """What the learner's notebook holds under `name`."""
        return self._add("name", name, label, name=name)

    def give(self, name: str, value: Callable) -> Ref:
        """A callable of the grader's to hand to the learner's code: a candidate of a bug hunt."""
        self.given[name] = value
        return self._add("given", name, None, name=name)

    def linear(self, name: str, weight: Tensor, bias: Tensor | None = None) -> Ref:
        """A ready `nn.Linear` to hand to the learner's code, for instance as the sub-layer of an Add & Norm."""
        return self._add("linear", name, None, weight=self._encode(weight), bias=self._encode(bias))

    def call(self, target: "Ref | str", *args, label: str | None = None, **kwargs) -> Ref:
        """Call the learner's `target` (a name of the notebook, or the result of an earlier step)."""
        target = self.name(target) if isinstance(target, str) else target
        words = [self._words(a) for a in args] + [f"{k}={self._words(v)}" for k, v in kwargs.items()]
        mode = self._mode(target)
        fields = {"target": target, "args": list(args), "kwargs": kwargs}
        encoded = {name: self._encode(value) for name, value in fields.items()}
        result = self._add("call", f"{self._subject(target)}({', '.join(words)})", label, mode, **encoded)
        self._modes.append((result.step, mode))
        return result

    def attribute(self, of: Ref, path: str, label: str | None = None) -> Ref:
        """The attribute of a result, `"projection.weight"` for instance."""
        return self._add("attribute", f"{self._subject(of)}.{path}", label, of=self._encode(of), path=path)

    def item(self, of: Ref, index: "int | str", label: str | None = None) -> Ref:
        """One part of a result that is a tuple, a list or a dict."""
        says = f"{self._subject(of)}[{index!r}]"
        return self._add("item", says, label, self._mode(of), of=self._encode(of), index=index)

    def load(self, module: Ref, weights: dict[str, Tensor]) -> Ref:
        """Put `weights` into the learner's module: by its `load_reference`, by name, or by unambiguous shape."""
        says = f"loading weights into {self._subject(module)}"
        return self._add("load", says, None, module=self._encode(module), weights=self._encode(weights))

    def parameter(self, module: Ref, name: str, shape: tuple[int, ...], label: str | None = None) -> Ref:
        """The learner's parameter of this name, else the only one of this shape."""
        says = f"{self._subject(module)}.{name}"
        return self._add("parameter", says, label, module=self._encode(module), name=name, shape=list(shape))

    def train(self, module: Ref, mode: bool = True) -> Ref:
        """Put a module into training mode, or with `mode=False` into evaluation mode."""
        says = f"{self._subject(module)}.train({mode})"
        self._modes.append((module.step, " in training" if mode else " in evaluation"))
        return self._add("train", says, None, module=self._encode(module), mode=mode)

    def seed(self, value: int) -> Ref:
        """Seed torch's random numbers before the next step."""
        return self._add("seed", f"seed {value}", None, value=value)

    def gradient(self, of: Ref, upstream: Tensor, wrt: Ref, label: str | None = None) -> Ref:
        """The gradient of sum(of · upstream) with respect to an input or a parameter."""
        step = self.steps[wrt.step]
        what = f"`{step['name']}`" if step["do"] == "parameter" else self._subject(wrt)
        says = f"the gradient of {self._subject(of)} with respect to {what}"
        return self._add(
            "gradient", says, label, of=self._encode(of), upstream=self._encode(upstream), wrt=self._encode(wrt)
        )

    def reached(self, of: Ref, upstream: Tensor, module: Ref, label: str | None = None) -> Ref:
        """For each weight matrix of a module, by its own name, whether sum(of · upstream) has a gradient there."""
        says = f"the gradient of {self._subject(of)} with respect to the weights of {self._subject(module)}"
        return self._add(
            "reached", says, label, of=self._encode(of), upstream=self._encode(upstream), module=self._encode(module)
        )

    def learned(self, module: Ref, label: str | None = None) -> Ref:
        """How many numbers of a module learn: those of its parameters that ask for a gradient."""
        return self._add("learned", f"the parameters of {self._subject(module)}", label, module=self._encode(module))

    def _add(self, do: str, subject: str, label: str | None, ending: str = "", **fields) -> Ref:
        if label is not None and any(step["label"] == label for step in self.steps):
            raise ValueError(f"the plan already has a step labelled {label!r}; give each its own label")
        says = subject + ending
        if label is not None and do in ("call", "item"):
            self._looked_at[says] += 1
            says += f" (call {self._looked_at[says]})" if self._looked_at[says] > 1 else ""
        self.steps.append({"do": do, "says": says, "label": label, **fields})
        self._subjects.append(subject)
        return Ref(len(self.steps) - 1)

    def _encode(self, value):
        if isinstance(value, Ref):
            return {"ref": value.step}
        if isinstance(value, Tensor):
            same, ref = self._passed.get(id(value), (None, None))
            if same is None or not torch.equal(self.tensors[self.steps[ref.step]["key"]], value):
                ref = self.tensor(f"tensor {len(self.tensors)}", value)
                self._passed[id(value)] = value, ref
            return {"ref": ref.step}
        if isinstance(value, torch.dtype):
            return {"dtype": str(value).removeprefix("torch.")}
        if isinstance(value, list | tuple):
            return {type(value).__name__: [self._encode(v) for v in value]}
        if isinstance(value, dict):
            return {"dict": {k: self._encode(v) for k, v in value.items()}}
        if value is None or isinstance(value, bool | int | float | str):
            return {"const": value}
        raise TypeError(f"a plan cannot carry a {type(value).__name__}; it takes tensors, dtypes, refs and plain JSON")

    def _words(self, value) -> str:
        """How an argument reads in a message."""
        if isinstance(value, Ref):
            return self._subject(value)
        if isinstance(value, dict):
            return f"a dict of {len(value)}"
        if isinstance(value, list | tuple) and len(value) > MOST_ARGUMENTS:
            return f"a {type(value).__name__} of {len(value)}"
        if isinstance(value, list | tuple):
            return ", ".join(map(self._words, value)).join("[]" if isinstance(value, list) else "()")
        return f"a tensor {tuple(value.shape)}" if isinstance(value, Tensor) else repr(value)

    def _mode(self, ref: Ref) -> str:
        """In which mode a module is, or a result was made, as the end of a sentence; empty where none was set."""
        whole = {ref.step}
        while self.steps[ref.step]["do"] in ("attribute", "item"):
            ref = Ref(self.steps[ref.step]["of"]["ref"])
            whole.add(ref.step)
        return next((mode for step, mode in reversed(self._modes) if step in whole), "")

    def _subject(self, ref: Ref) -> str:
        """How a result reads as the subject of a sentence: what would be long without what its brackets hold."""
        subject, shorter = "", self._subjects[ref.step]
        while len(shorter) > LONGEST_SUBJECT and shorter != subject:
            subject = shorter
            shorter = re.sub(r"\((?!…\))([^()]|\(…\))*\)", "(…)", subject, count=1)  # the first that holds no other
        return shorter
