"""Carry out a challenge's plan on an answer and write down what happened: tensors, plain facts, errors.

This is the only module of the grader that runs beside the learner's code. It is the same for every exercise, knows no
right answer, and needs nothing but torch and the standard library.
"""

import contextlib
import io
import linecache
import random
import sys
import traceback
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

MAX_TEXT = 2_000  # characters kept of one message, or of what the learner's code prints
MAX_ITEMS = 100  # parts kept of one tuple, list or dict
MAX_DEPTH = 4


@dataclass
class Recording:
    """What an answer did with a plan: one JSON record per step, the tensors they name, and the printed text."""

    records: list[dict] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    printed: str = ""
    called: list[str] = field(default_factory=list)


def collect(plan, namespace: dict) -> Recording:
    """Carry out `plan` (its `steps`, `tensors`, `watch` and `given`) on the answers found in `namespace`.

    Never raises for what the learner's code does: an error becomes the record of its step, and the steps that need its
    result are recorded as blocked. Random states, default dtype and device, grad mode and the streams are as before
    when it returns.
    """
    recording = Recording()
    runner = _Runner(plan, namespace, recording)
    out = _BoundedText()
    watch = _Watch(plan.watch)
    with _clean_state(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        for step in plan.steps:
            with watch:
                recording.records.append(runner.carry_out(step))
    recording.printed = out.getvalue()
    recording.called = sorted(watch.called)
    return recording


class Fault(Exception):
    """A step that cannot be done, said in one sentence for the learner."""

    def __init__(self, status: str, sentence: str):
        super().__init__(sentence)
        self.status = status


class _Blocked(Exception):
    def __init__(self, step: int):
        self.step = step


class _Runner:
    def __init__(self, plan, namespace: dict, recording: Recording):
        self.plan, self.namespace, self.recording = plan, namespace, recording
        self.results: list = []  # the value of each step, or a _Blocked

    def carry_out(self, step: dict) -> dict:
        record = {"label": step["label"], "says": step["says"], "status": "ok"}
        try:
            value = getattr(self, "do_" + step["do"])(step)
            if step["label"] is not None:
                record["value"] = self.describe(value, step["label"])
            record["changed"] = self.changed_inputs(step)
        except _Blocked as blocked:
            record |= {"status": "blocked", "by": blocked.step}
            value = blocked
        except Fault as fault:
            record |= {"status": fault.status, "error": str(fault)}
            value = _Blocked(len(self.results))
        except (Exception, SystemExit) as error:
            record |= {"status": "raised", **self.describe_error(error)}
            value = _Blocked(len(self.results))
        self.results.append(value)
        return record

    # --- the steps ---

    def do_tensor(self, step):
        return self.plan.tensors[step["key"]].clone().requires_grad_(step["requires_grad"])

    def do_name(self, step):
        if step["name"] not in self.namespace:
            raise Fault("missing", f"`{step['name']}` is not defined: run the cell that defines it, under that name")
        return self.namespace[step["name"]]

    def do_given(self, step):
        return self.plan.given[step["name"]]

    def do_linear(self, step):
        weight, bias = self.decode(step["weight"]), self.decode(step["bias"])
        linear = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, dtype=weight.dtype)
        linear.load_state_dict({"weight": weight} | ({} if bias is None else {"bias": bias}))
        return linear

    def do_call(self, step):
        target = self.decode(step["target"])
        if not callable(target):
            name = step["says"].split("(")[0]
            raise Fault("uncallable", f"`{name}` is {_kind(target)}, but should be a function or a class")
        return target(*self.decode(step["args"]), **self.decode(step["kwargs"]))

    def do_attribute(self, step):
        value = self.decode(step["of"])
        for part in step["path"].split("."):
            if not hasattr(value, part):
                raise Fault("missing", f"{step['says']}: there is no attribute `{part}`")
            value = getattr(value, part)
        return value

    def do_item(self, step):
        whole = self.decode(step["of"])
        try:
            return whole[step["index"]]
        except (TypeError, KeyError, IndexError):
            raise Fault("missing", f"{step['says']} does not exist: the result is {_kind(whole)}") from None

    def do_seed(self, step):
        torch.manual_seed(step["value"])

    def do_train(self, step):
        self.module(step).train(step["mode"])

    def do_load(self, step):
        module, weights = self.module(step), self.decode(step["weights"])
        if hasattr(module, "load_reference"):
            module.load_reference({name: weight.clone() for name, weight in weights.items()})
            return
        parts = self.match_parameters(module, {name: weight.shape for name, weight in weights.items()})
        with torch.no_grad():
            for name, weight in weights.items():
                parts[name].copy_(weight)

    def do_parameter(self, step):
        module, name = self.module(step), step["name"]
        return self.match_parameters(module, {name: step["shape"]})[name]

    def do_gradient(self, step):
        wrt = self.decode(step["wrt"])
        return self.gradients(step, [wrt])[0]

    def do_reached(self, step):
        weights = {name: p for name, p in self.module(step).named_parameters() if p.dim() > 1 and p.requires_grad}
        if not weights:
            raise Fault("gradient", f"{step['says']} cannot be taken: there is no weight that learns")
        gradients = self.gradients(step, list(weights.values()))
        return {name: bool(gradient.any()) for name, gradient in zip(weights, gradients, strict=True)}

    # --- helpers ---

    def decode(self, code: dict):
        ((kind, value),) = code.items()
        if kind == "ref":
            result = self.results[value]
            if isinstance(result, _Blocked):
                raise _Blocked(result.step)
            return result
        if kind == "dict":
            return {name: self.decode(v) for name, v in value.items()}
        if kind in ("list", "tuple"):
            return (list if kind == "list" else tuple)(self.decode(v) for v in value)
        return getattr(torch, value) if kind == "dtype" else value

    def gradients(self, step, wrt: list[Tensor]) -> list[Tensor]:
        of, upstream = self.decode(step["of"]), self.decode(step["upstream"])
        if not isinstance(of, Tensor):
            raise Fault("gradient", f"{step['says']} cannot be taken: the result is {_kind(of)}, not a tensor")
        if of.shape != upstream.shape:
            shapes = f"{tuple(of.shape)}, but should have {tuple(upstream.shape)}"
            raise Fault("shape", f"{step['says']} cannot be taken: the result has shape {shapes}")
        if not of.requires_grad:
            raise Fault(
                "gradient",
                f"{step['says']} cannot be taken: the result is cut off from autograd "
                "(by a detach, a no_grad, NumPy, or a fresh tensor)",
            )
        total = (of * upstream.to(of.dtype)).sum()
        found = torch.autograd.grad(total, wrt, retain_graph=True, allow_unused=True)
        return [torch.zeros_like(w) if g is None else g for w, g in zip(wrt, found, strict=True)]

    def module(self, step) -> nn.Module:
        module = self.decode(step["module"])
        if not isinstance(module, nn.Module):
            raise Fault("module", f"{step['says']}: it is {_kind(module)}, but should be an nn.Module")
        return module

    def match_parameters(self, module: nn.Module, shapes: dict) -> dict[str, Tensor]:
        """The module's own tensor for each stated name: by name, else by shape where only one has it."""
        own = dict(module.named_parameters()) | dict(module.named_buffers())
        kind, found = type(module).__name__, {}
        for name, shape in shapes.items():
            if name in own:
                if own[name].shape != torch.Size(shape):
                    sizes = f"{tuple(own[name].shape)}, but should have {tuple(shape)}"
                    raise Fault("parameters", f"the parameter `{name}` of your {kind} has shape {sizes}")
                found[name] = own[name]
                continue
            spare = [tensor for other, tensor in own.items() if other not in shapes]
            alike = [tensor for tensor in spare if tensor.shape == torch.Size(shape)]
            if len(alike) != 1 or sum(torch.Size(s) == torch.Size(shape) for s in shapes.values()) > 1:
                holds = ", ".join(f"`{other}` {tuple(tensor.shape)}" for other, tensor in list(own.items())[:12])
                raise Fault(
                    "parameters",
                    f"your {kind} has no parameter `{name}`; it has {holds or 'none at all'}. "
                    "Use the names that the exercise states, or write `load_reference(weights)`",
                )
            found[name] = alike[0]
        return found

    def changed_inputs(self, step: dict) -> list[str]:
        """The names of the inputs that this call changed in place."""
        if step["do"] != "call":
            return []
        changed = []
        for index in _refs(step["args"]) + _refs(step["kwargs"]):
            source = self.plan.steps[index]
            if source["do"] == "tensor" and not torch.equal(self.results[index], self.plan.tensors[source["key"]]):
                changed.append(source["key"])
        return changed

    def describe_error(self, error: BaseException) -> dict:
        """The error and the last line of the learner's own code that led to it."""
        fact = {"type": type(error).__name__, "error": _clip(error), "line": None}
        for frame, number in traceback.walk_tb(error.__traceback__):
            if frame.f_globals is self.namespace:
                code = frame.f_code
                source = linecache.getline(code.co_filename, number).strip()
                fact["line"] = {"function": code.co_name, "number": number, "source": source[:200]}
        return fact

    def describe(self, value, key: str, depth: int = 0) -> dict:
        """`value` as JSON; the numbers of a tensor go into the recording's tensors under `key`."""
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "bifu":
            return self.describe(torch.from_numpy(value.copy()), key, depth) | {"numpy": True}
        if numpy is not None and isinstance(value, numpy.generic):
            return self.describe(value.item(), key, depth)
        if isinstance(value, Tensor):
            self.recording.tensors[key] = value.detach().clone()
            fact = {"kind": "tensor", "key": key, "shape": list(value.shape), "requires_grad": value.requires_grad}
            return fact | {"dtype": str(value.dtype).removeprefix("torch."), "device": value.device.type}
        if value is None or isinstance(value, bool | int | float):
            return {"kind": "number" if type(value) in (int, float) else type(value).__name__, "value": value}
        if isinstance(value, str):
            return {"kind": "str", "value": value[:MAX_TEXT]}
        if isinstance(value, torch.Size | tuple | list) and depth < MAX_DEPTH:
            parts = [self.describe(v, f"{key}.{i}", depth + 1) for i, v in enumerate(value[:MAX_ITEMS])]
            return {"kind": "list" if isinstance(value, list) else "tuple", "parts": parts}
        if isinstance(value, dict) and depth < MAX_DEPTH:
            parts = {str(k): self.describe(v, f"{key}.{k}", depth + 1) for k, v in list(value.items())[:MAX_ITEMS]}
            return {"kind": "dict", "parts": parts}
        return {"kind": "other", "words": _kind(value)}


def _kind(value) -> str:
    """What a value is, in words."""
    if value is None:
        return "None (did a `return` get lost?)"
    if isinstance(value, Tensor):
        return f"a tensor {tuple(value.shape)}"
    if isinstance(value, nn.Module):
        return f"the module {type(value).__name__}"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def _refs(code: dict) -> list[int]:
    ((kind, value),) = code.items()
    if kind == "ref":
        return [value]
    parts = value.values() if kind == "dict" else value if kind in ("list", "tuple") else ()
    return [index for part in parts for index in _refs(part)]


def _clip(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:
        text = "(its message cannot be shown)"
    return text[:MAX_TEXT]


class _Watch(TorchFunctionMode):
    """Notes which of the watched functions the learner's code calls."""

    def __init__(self, names: list[str]):
        super().__init__()
        self.names, self.called = set(names), set()

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in self.names:
            self.called.add(name)
        return func(*args, **(kwargs or {}))


class _BoundedText(io.StringIO):
    """A stream that keeps only the first `MAX_TEXT` characters."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, MAX_TEXT - self.tell())])
        return len(text)


@contextlib.contextmanager
def _clean_state():
    """Torch's defaults while the plan runs, the learner's settings again afterwards."""
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    python_state = random.getstate()
    dtype, device = torch.get_default_dtype(), torch.get_default_device()
    try:
        with torch.random.fork_rng(devices=[]), torch.enable_grad():
            torch.set_default_dtype(torch.float32)
            if device.type != "cpu":
                torch.set_default_device("cpu")
            yield
    finally:
        torch.set_default_dtype(dtype)
        if torch.get_default_device() != device:
            torch.set_default_device(device)
        random.setstate(python_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
