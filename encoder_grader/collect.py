"""Carry out a challenge's plan on an answer and write down what happened: tensors, plain facts, errors.

This is the only module of the grader that runs beside the learner's code. It is the same for every exercise, knows no
right answer, and needs nothing but torch and the standard library.
"""

import contextlib
import io
import itertools
import linecache
import random
import signal
import sys
import traceback
from dataclasses import dataclass, field

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

MAX_TEXT = 2_000  # characters kept of one message, or of what the learner's code prints
MAX_ITEMS = 100  # parts kept of one tuple, list or dict
MAX_NAMED = 12  # parameters named in one message
MAX_DEPTH = 4
MAX_PARTS = 10_000  # parts kept of all results together
MAX_NUMBERS = 10**7  # numbers kept of all tensors together


@dataclass
class Recording:
    """What an answer did with a plan: one JSON record per step, the tensors they name, and the printed text."""

    records: list[dict] = field(default_factory=list)
    tensors: dict[str, Tensor] = field(default_factory=dict)
    printed: str = ""


def collect(plan, namespace: dict, seconds: float | None = None, trusted: bool = False) -> Recording:
    """Carry out `plan` (its `steps`, `tensors`, `watch` and `given`) on the answers found in `namespace`.

    With `seconds`, a step that takes longer is stopped: an error like any other. That needs the main thread of a
    process on Linux or macOS. The grader's own answers are `trusted` not to change torch's defaults between two steps,
    and nobody notes which built-ins they call: that is faster.

    Never raises for what the learner's code does: an error becomes the record of its step, and the steps that need its
    result are recorded as blocked. Random states, default dtype and device, grad mode and the streams are as before
    when it returns.
    """
    recording = Recording()
    runner = _Runner(plan, namespace, recording, seconds)
    out = _BoundedText()
    watch = _Watch(plan.watch)
    with clean_state(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        for step in plan.steps:
            if trusted:
                recording.records.append(runner.carry_out(step))
                continue
            _set_defaults()  # an earlier step may have changed them
            with watch if watch.names else contextlib.nullcontext(), torch.inference_mode(False), torch.enable_grad():
                recording.records.append(runner.carry_out(step) | {"called": sorted(watch.called)})
            watch.called.clear()
    recording.printed = out.text
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
    def __init__(self, plan, namespace: dict, recording: Recording, seconds: float | None):
        self.plan, self.namespace, self.recording, self.seconds = plan, namespace, recording, seconds
        self.results: list = []  # the value of each step, or a _Blocked
        self.unloaded: dict[int, int] = {}  # step → the failed load that its result hangs on
        self.parts = self.numbers = 0  # kept so far

    def carry_out(self, step: dict) -> dict:
        """Do one step and say what happened. Only the learner's own Ctrl-C comes through."""
        number = len(self.results)
        record = {"label": step["label"], "says": step["says"], "status": "ok"}
        try:
            with _time_limit(self.seconds):
                value = getattr(self, "do_" + step["do"])(step)
                if step["label"] is not None:
                    record["value"] = self.describe(value, step["label"])
        except _Blocked as blocked:
            record |= {"status": "blocked", "by": blocked.step}
            value = blocked
        except Fault as fault:
            record |= {"status": fault.status, "error": str(fault)}
            value = _Blocked(number)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            record |= {"status": "raised", **self.describe_error(error)}
            value = _Blocked(number)
        self.results.append(value)
        record["changed"] = self.restore_inputs(step)
        if step["do"] == "load" and record["status"] != "ok":
            self.unloaded[step["module"]["ref"]] = number
        for index in all_refs(step) if self.unloaded else ():
            if index in self.unloaded and step["do"] != "load":
                record["unloaded"] = self.unloaded[number] = self.unloaded[index]
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
            made_by = self.plan.steps[step["target"]["ref"]]
            if made_by["do"] != "name":
                raise Fault("uncallable", f"{made_by['says']} is {_kind(target)}, but should be something to call")
            raise Fault("uncallable", f"`{made_by['name']}` is {_kind(target)}, but should be a function or a class")
        return target(*self.decode(step["args"]), **self.decode(step["kwargs"]))

    def do_attribute(self, step):
        value = self.decode(step["of"])
        for part in step["path"].split("."):
            if not hasattr(value, part):
                raise Fault("missing", f"{step['says']} does not exist: {_kind(value)} has no attribute `{part}`")
            value = getattr(value, part)
        return value

    def do_item(self, step):
        whole = self.decode(step["of"])
        if isinstance(whole, Tensor):  # whose parts are something else
            raise Fault("missing", f"{step['says']} does not exist: the result is one tensor, {tuple(whole.shape)}")
        try:
            return whole[step["index"]]
        except (TypeError, KeyError, IndexError):
            raise Fault("missing", f"{step['says']} does not exist: the result is {_kind(whole)}") from None

    def do_seed(self, step):
        torch.default_generator.manual_seed(step["value"])  # the CPU's alone: torch.manual_seed takes 1 ms more
        random.seed(step["value"])
        if (numpy := sys.modules.get("numpy")) is not None:
            numpy.random.seed(step["value"] % 2**32)

    def do_train(self, step):
        self.module(step).train(step["mode"])

    def do_load(self, step):
        load_weights(self.module(step), self.decode(step["weights"]))

    def do_parameter(self, step):
        module, name = self.module(step), step["name"]
        return match_parameters(module, {name: step["shape"]}, "Use the name that the exercise states")[name]

    def do_gradient(self, step):
        wrt = self.decode(step["wrt"])
        return self.gradients(step, self.decode(step["upstream"]), [wrt])[0]

    def do_reached(self, step):
        weights = {name: p for name, p in self.module(step).named_parameters() if p.dim() > 1}
        learning = {name: p for name, p in weights.items() if p.requires_grad}
        if not learning:
            raise Fault("gradient", f"{step['says']} cannot be taken: there is no weight that learns")
        of, upstream = self.decode(step["of"]), self.decode(step["upstream"])
        if isinstance(of, Tensor) and of.numel() == upstream.numel():
            upstream = upstream.reshape(of.shape)  # where a gradient arrives does not depend on the order of the axes
        found = dict(zip(learning, self.gradients(step, upstream, list(learning.values())), strict=True))
        return {name: name in found and bool(found[name].any()) for name in weights}

    def do_learned(self, step):
        return sum(p.numel() for p in self.module(step).parameters() if p.requires_grad)

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

    def gradients(self, step, upstream: Tensor, wrt: list[Tensor]) -> list[Tensor]:
        of = self.decode(step["of"])
        if not isinstance(of, Tensor):
            raise Fault("gradient", f"{step['says']} cannot be taken: the result is {_kind(of)}, not a tensor")
        if of.shape != upstream.shape:
            shapes = f"{tuple(of.shape)}, but should have {tuple(upstream.shape)}"
            raise Fault("shape", f"{step['says']} cannot be taken: the result has shape {shapes}")
        if not of.requires_grad:
            raise Fault(
                "gradient",
                f"{step['says']} cannot be taken: the result is cut off from autograd (by a detach, a no_grad, NumPy, "
                "a fresh tensor, or a parameter that is frozen or has no part in it)",
            )
        if not all(w.requires_grad for w in wrt):
            raise Fault("gradient", f"{step['says']} cannot be taken: that asks for no gradient (a buffer, or frozen)")
        total = (of * upstream.to(of.dtype)).sum()
        if not all(w.is_leaf for w in wrt):
            found = torch.autograd.grad(total, wrt, retain_graph=True, allow_unused=True)
            return [torch.zeros_like(w) if g is None else g for w, g in zip(wrt, found, strict=True)]
        for w in wrt:
            w.grad = None
        total.backward(inputs=wrt, retain_graph=True)  # as in training, hooks and all
        return [torch.zeros_like(w) if w.grad is None else w.grad.clone() for w in wrt]

    def module(self, step) -> nn.Module:
        module = self.decode(step["module"])
        if not isinstance(module, nn.Module):
            raise Fault("module", f"{step['says']}: it is {_kind(module)}, but should be an nn.Module")
        return module

    def restore_inputs(self, step: dict) -> list[str]:
        """The names of the inputs that this call changed in place; later steps get them as they were."""
        changed = []
        for index in all_refs(step) if step["do"] == "call" else ():
            source = self.plan.steps[index]
            if source["do"] == "tensor" and not _equal(self.results[index], self.plan.tensors[source["key"]]):
                changed.append(source["key"])
                if not source["requires_grad"]:  # else a later gradient refers to this very tensor
                    self.results[index] = self.do_tensor(source)
        return changed

    def describe_error(self, error: BaseException) -> dict:
        """The error and the last line of the learner's own code that led to it."""
        try:
            kinds = [_text(kind.__name__) for kind in type.mro(type(error)) if kind.__module__ == "builtins"]
            fact = {"type": _text(type(error).__name__), "kinds": kinds, "error": _message(error), "line": None}
            for frame, number in traceback.walk_tb(error.__traceback__):
                if frame.f_globals is self.namespace:
                    code = frame.f_code
                    source = linecache.getline(code.co_filename, number).strip()
                    function = code.co_qualname.partition(".<locals>")[0].rpartition(".")[2]  # not <genexpr>
                    fact["line"] = {"function": _text(function), "number": number, "source": _text(source[:200])}
            return fact
        except BaseException:  # nothing of this error can be trusted
            return {"type": "an error", "kinds": [], "error": "that cannot be shown", "line": None}

    def describe(self, value, key: str, depth: int = 0) -> dict:
        """`value` as JSON; the numbers of a tensor go into the recording's tensors under `key`."""
        self.parts += 1
        if self.parts > MAX_PARTS:
            return {"kind": "other", "words": "a result with too many parts"}
        numpy = sys.modules.get("numpy")
        if numpy is not None and isinstance(value, numpy.ndarray) and value.dtype.kind in "bifu":
            return self.describe_tensor(torch.from_numpy(numpy.array(value)), key) | {"numpy": True}
        if numpy is not None and isinstance(value, numpy.generic):
            value = value.item()
        if isinstance(value, Tensor):
            return self.describe_tensor(value, key)
        if value is None or isinstance(value, bool):
            return {"kind": type(value).__name__, "value": value}
        if isinstance(value, int):
            value = int.__int__(value)
            if abs(value) >= 2**63:
                return {"kind": "other", "words": "a whole number of more than 64 bits"}
            return {"kind": "number", "value": value}
        if isinstance(value, float):
            return {"kind": "number", "value": float.__float__(value)}
        if isinstance(value, str):
            return {"kind": "str", "value": _text(value)}
        if isinstance(value, tuple | list) and depth < MAX_DEPTH:
            parts = [self.describe(v, f"{key}.{i}", depth + 1) for i, v in enumerate(value[:MAX_ITEMS])]
            return {"kind": "list" if isinstance(value, list) else "tuple", "parts": parts}
        if isinstance(value, dict) and depth < MAX_DEPTH:
            items = [(_text(str(k)), v) for k, v in itertools.islice(value.items(), MAX_ITEMS)]
            return {"kind": "dict", "parts": {k: self.describe(v, f"{key}.{k}", depth + 1) for k, v in items}}
        return {"kind": "other", "words": _kind(value)}

    def describe_tensor(self, value: Tensor, key: str) -> dict:
        """The facts of a tensor; its numbers are kept as a plain dense copy on the CPU, whatever it is made of."""
        with torch._C.DisableTorchFunctionSubclass():
            if value.is_nested:
                return {"kind": "other", "words": "a nested tensor"}
            fact = {"kind": "tensor", "key": key, "shape": list(value.shape), "requires_grad": value.requires_grad}
            self.numbers += value.numel()
            if self.numbers > MAX_NUMBERS:
                return {"kind": "other", "words": f"{_kind(value)}, too large to be compared"}
            plain = value.detach()
            plain = plain.dequantize() if plain.is_quantized else plain
            plain = plain if plain.layout == torch.strided else plain.to_dense()
            copy = torch.zeros(fact["shape"], dtype=plain.dtype, device="cpu")
            if value.device.type != "meta":
                copy.copy_(plain)
            self.recording.tensors[key] = copy
            return fact | {"dtype": str(copy.dtype).removeprefix("torch."), "device": value.device.type}


def load_weights(module: nn.Module, weights: dict[str, Tensor]) -> None:
    """Put `weights` into a module: by its own `load_reference`, else by name, else by unambiguous shape."""
    if hasattr(module, "load_reference"):
        module.load_reference({name: weight.clone() for name, weight in weights.items()})
        return
    own = dict(module.named_parameters(remove_duplicate=False))
    shapes = [p.shape for p in own.values() if not nn.parameter.is_lazy(p)]
    # a bias that is not there is as good as one of zeros
    wanted = {n: w.shape for n, w in weights.items() if n in own or w.shape in shapes or w.any()}
    parts = match_parameters(module, wanted)
    with torch.no_grad():
        for name, part in parts.items():
            part.copy_(weights[name])


BY_ITS_OWN = (
    "Use the names that the exercise states, or write a method `load_reference(self, weights)` that puts each tensor "
    "of the dict `weights` where your module keeps it"
)


def match_parameters(module: nn.Module, shapes: dict, advice: str = BY_ITS_OWN) -> dict[str, Tensor]:
    """The module's own tensor for each stated name: by name, else by shape where only one has it; else the advice."""
    parameters = dict(module.named_parameters(remove_duplicate=False))
    own = parameters | dict(module.named_buffers())
    kind, found = type(module).__name__, {}
    for name, shape in shapes.items():
        if name in own:
            if nn.parameter.is_lazy(own[name]):
                own[name].materialize(shape)
            if own[name].shape != torch.Size(shape):
                sizes = f"{tuple(own[name].shape)}, but should have {tuple(shape)}"
                raise Fault("parameters", f"the parameter `{name}` of your {kind} has shape {sizes}")
            found[name] = own[name]
            continue
        alike = []
        for some in (parameters, own):  # a buffer only where no parameter fits
            spare = {id(tensor): tensor for other, tensor in some.items() if other not in shapes}
            alike = alike or [tensor for tensor in spare.values() if tensor.shape == torch.Size(shape)]
        if len(alike) != 1 or sum(torch.Size(s) == torch.Size(shape) for s in shapes.values()) > 1:
            if isinstance(getattr(module, name, None), Tensor):
                raise Fault("parameters", f"`{name}` of your {kind} is a tensor, but no parameter")
            holds = ", ".join(f"`{other}` {tuple(tensor.shape)}" for other, tensor in list(own.items())[:MAX_NAMED])
            holds += f" and {len(own) - MAX_NAMED} more" if len(own) > MAX_NAMED else ""
            none = "none at all (modules in a plain list do not count)"
            raise Fault("parameters", f"your {kind} has no parameter `{name}`; it has {holds or none}. {advice}")
        found[name] = alike[0]
    return found


def _kind(value) -> str:
    """What a value is, in words."""
    if value is None:
        return "None (did a `return` get lost?)"
    if isinstance(value, Tensor):
        return f"a tensor {tuple(value.shape)}"
    if isinstance(value, nn.Module):
        return f"the module {_text(type(value).__name__)}"
    if isinstance(value, type):
        return f"the class {_text(value.__name__)}"
    if isinstance(value, tuple | list):
        return f"a {'tuple' if isinstance(value, tuple) else 'list'} of {len(value)}"
    name = _text(type(value).__name__)
    return f"{'an' if name[:1] in tuple('aeiouAEIO') else 'a'} {name}"


def _refs(code: dict) -> list[int]:
    ((kind, value),) = code.items()
    if kind == "ref":
        return [value]
    parts = value.values() if kind == "dict" else value if kind in ("list", "tuple") else ()
    return [index for part in parts for index in _refs(part)]


def all_refs(step: dict) -> list[int]:
    """The earlier steps whose results this step uses."""
    return [index for code in step.values() if isinstance(code, dict) for index in _refs(code)]


def _equal(tensor, original: Tensor) -> bool:
    """Whether an input is still what it was; where the learner's code left nothing to compare, it is not."""
    try:
        if tensor.shape != original.shape or tensor.dtype != original.dtype:
            return False
        tensor = tensor.detach()
        return torch.equal(tensor, original) or torch.equal(tensor.nan_to_num(), original.nan_to_num())
    except Exception:
        return False


def _message(error: BaseException) -> str:
    try:
        return _text(" ".join(str(error).split()))
    except BaseException:
        return "(its message cannot be shown)"


def _text(text: str) -> str:
    """A text of the learner's, in bounded length and in characters that can be written anywhere."""
    return str.__str__(text)[:MAX_TEXT].encode("utf-8", "replace").decode("utf-8")


class TooSlow(BaseException):
    """Not an Exception, so that a learner's `except Exception` does not catch it by chance."""


@contextlib.contextmanager
def _time_limit(seconds: float | None):
    """Raise TooSlow in the code inside once the time is up, and again each second while it goes on."""
    if seconds is None:
        yield
        return

    inside = True

    def stop(*_):
        if inside:
            raise TooSlow(f"it ran for more than {seconds:g} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, seconds, 1)
    try:
        yield
    finally:
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


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


class _BoundedText(io.TextIOBase):
    """A stream that keeps the first `MAX_TEXT` characters, and that the learner's code cannot close."""

    def __init__(self):
        super().__init__()
        self.text = ""

    def write(self, text: str) -> int:
        self.text += _text(text[: MAX_TEXT - len(self.text)])
        return len(text)

    def writable(self) -> bool:
        return True

    def close(self) -> None:
        pass


def _set_defaults() -> None:
    torch.set_default_dtype(torch.float32)
    _set_default_device(torch.device("cpu"))


def _set_default_device(device: torch.device) -> None:
    """Set it where it differs; the CPU by None, since "cpu" leaves a mode on that slows every later call of torch's."""
    if torch.get_default_device() != device:
        torch.set_default_device(None if device.type == "cpu" else device)


@contextlib.contextmanager
def clean_state():
    """Torch's defaults and a single thread inside, the learner's settings again afterwards.

    The tensors of a challenge are small: more threads only wait for one another, on a busy machine ten times as long.
    """
    numpy = sys.modules.get("numpy")
    numpy_state = numpy.random.get_state() if numpy is not None else None
    python_state = random.getstate()
    dtype, device, threads = torch.get_default_dtype(), torch.get_default_device(), torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        with torch.random.fork_rng(devices=[]), torch.inference_mode(False), torch.enable_grad():
            _set_defaults()
            yield
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(dtype)
        _set_default_device(device)
        random.setstate(python_state)
        if numpy is not None:
            numpy.random.set_state(numpy_state)
