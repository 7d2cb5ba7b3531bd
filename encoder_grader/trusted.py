"""The grader's side of a check: hand over the plan, answer for the candidates, and judge what comes back.

Whatever comes from the cage is untrusted: it is bounded, read as plain data, and put into the form of a recording step
by step along the plan, so that it can say nothing but what happened at a step.
"""

from __future__ import annotations

import hmac
import itertools
import math
import os
import secrets
import socket
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from encoder_grader.collect import MAX_DEPTH, MAX_ITEMS, MAX_NUMBERS, MAX_PARTS, MAX_TEXT, Recording, clean_state
from encoder_grader.exercise import Exercise
from encoder_grader.plan import Plan
from encoder_grader.verdict import Result, Verdict
from encoder_grader.wire import Malformed, Message, pack, receive, send, unpack

STEP_SECONDS = 10  # for one call of the learner's code
MAX_CALLS = 5_000  # of candidates, in one check
KEPT_CALLS = 200  # whose gradients can still be asked for
LARGEST = 2**18  # numbers handed to a candidate in one call,
LONGEST = 512  # entries along the last axis of a tensor, or along both of a matrix,
OTHERS = 64  # and along any other axis: attention makes a square of them, and broadcasting more
PLAIN = 1_000  # the length of a text or a list, and the number of all parts; 10 times as much is a whole number
STATUSES = ("ok", "raised", "blocked", "missing", "uncallable", "parameters", "gradient", "shape", "module")


def seed_of(secret: bytes, *parts: str) -> int:
    """The seed of a graded challenge: the same for the same parts, and not to be guessed without the secret."""
    digest = hmac.digest(secret, "\0".join(parts).encode(), "sha256")
    return int.from_bytes(digest[:7], "big")


def secret_of(folder: Path) -> bytes:
    """The secret of a class, made at first use; only its owner can read the file."""
    file = folder / ".grading_secret"
    if not file.exists():
        partial = folder / f".grading_secret.{os.getpid()}"
        descriptor = os.open(partial, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as opened:
            opened.write(secrets.token_hex(32))
        try:
            os.link(partial, file)  # fails where another process was first
        except FileExistsError:
            pass
        finally:
            partial.unlink()
    return file.read_bytes()


def challenge(exercise: Exercise, seed: int) -> Plan:
    """The plan of one check, made in torch's defaults."""
    with clean_state():
        return exercise.challenge(seed)


def exchange(plan: Plan, connection: socket.socket, deadline: float) -> Recording:
    """Hand the plan over and answer for the candidates until the recording comes.

    Args:
        connection: to the cage.
        deadline: `time.monotonic()` at which to give up.

    Raises:
        Malformed: something else came, or more than is taken.
        TimeoutError: the time was up.
    """
    content = {"steps": plan.steps, "watch": plan.watch, "given": list(plan.given), "seconds": STEP_SECONDS}
    connection.settimeout(_left(deadline))
    send(connection, Message("plan", content, plan.tensors))
    candidates = Candidates(plan)
    while True:
        connection.settimeout(_left(deadline))
        message = receive(connection)
        if message.kind == "recording":
            return recording_of(plan, message)
        connection.settimeout(_left(deadline))
        send(connection, candidates.reply(message))


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


class Candidates:
    """Answers for the candidates of a bug hunt: values, errors, and gradients of the last calls."""

    def __init__(self, plan: Plan):
        self.given = plan.given
        self.calls = 0
        self.kept: dict[int, tuple[dict[str, Tensor], dict[str, Tensor]]] = {}  # number → inputs, outputs

    def reply(self, message: Message) -> Message:
        """The answer to one message of the cage.

        Raises:
            Malformed: it is no question, or one too many.
        """
        self.calls += 1
        if self.calls > MAX_CALLS:
            raise Malformed(f"the candidates were called more than {MAX_CALLS} times")
        answer = self._question(message)
        random = message.tensors.pop("random", None)
        with clean_state(), torch.enable_grad():
            if isinstance(random, Tensor):
                try:
                    torch.set_rng_state(random)
                except (RuntimeError, TypeError):
                    raise Malformed("a random state that is none") from None
            try:
                reply = answer(message)
            except Malformed:
                raise
            except Exception as error:  # the candidate's own: the learner's code sees it
                reply = Message("error", {"type": type(error).__name__, "message": str(error)[:MAX_TEXT]})
            reply.tensors = reply.tensors | {"random": torch.get_rng_state()}
            return reply

    def _question(self, message: Message):
        """How to answer a message.

        Raises:
            Malformed: it asks for what is not there.
        """
        content = message.content if isinstance(message.content, dict) else {}
        if message.kind == "call" and isinstance(name := content.get("name"), str) and name in self.given:
            return self._call
        if message.kind == "gradient" and (kept := self._kept(content.get("number"))) is not None:
            named = message.tensors.keys() - {"random"} <= kept[1].keys()
            if named and isinstance(content.get("inputs"), list):
                return self._gradient
        raise Malformed("a question that cannot be answered")

    def _kept(self, number: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]] | None:
        return self.kept.get(number) if isinstance(number, int) else None

    def _call(self, message: Message) -> Message:
        _bound(message)
        args, kwargs = unpack(message.content.get("args"), message.tensors)
        inputs = {name: tensor for name, tensor in message.tensors.items() if tensor.requires_grad}
        result = self.given[message.content["name"]](*args, **kwargs)
        outputs: dict[str, Tensor] = {}
        code = pack(result, outputs)
        if inputs:
            self.kept[self.calls] = inputs, outputs
            self.kept.pop(self.calls - KEPT_CALLS, None)
        plain = {name: tensor.detach() for name, tensor in outputs.items()}
        return Message("result", {"number": self.calls, "result": _without_learning(code)}, plain)

    def _gradient(self, message: Message) -> Message:
        inputs, outputs = self.kept[message.content["number"]]
        pairs = [(outputs[name], grad) for name, grad in message.tensors.items() if outputs[name].requires_grad]
        names = [name for name in message.content["inputs"] if isinstance(name, str) and name in inputs]
        if not pairs or not names:
            return Message("gradients")
        tensors, upstream = zip(*pairs, strict=True)
        found = torch.autograd.grad(tensors, [inputs[n] for n in names], upstream, retain_graph=True, allow_unused=True)
        return Message("gradients", None, {n: g for n, g in zip(names, found, strict=True) if g is not None})


def _bound(message: Message) -> None:
    """Raise unless a candidate can be called with this and take little: the grader computes it, without a cage.

    Raises:
        ValueError: a tensor or a value is too large; the learner's code sees the sentence.
    """
    for tensor in message.tensors.values():
        sizes = tuple(tensor.shape)
        longest = (LONGEST,) * len(sizes) if len(sizes) <= 2 else (OTHERS,) * (len(sizes) - 1) + (LONGEST,)
        if len(sizes) > 4 or any(size > most for size, most in zip(sizes, longest, strict=True)):
            raise ValueError(
                f"a candidate takes tensors of at most four axes, {LONGEST} entries along the last and {OTHERS} along "
                f"any other, not {sizes}"
            )
    if sum(tensor.numel() for tensor in message.tensors.values()) > LARGEST:
        raise ValueError(f"a candidate takes at most {LARGEST} numbers in one call")
    backwards = [tuple(reversed(tensor.shape)) for tensor in message.tensors.values()]
    if math.prod(map(max, itertools.zip_longest(*backwards, fillvalue=1))) > 8 * LARGEST:
        raise ValueError(f"a candidate takes tensors that broadcast to at most {8 * LARGEST} numbers")
    waiting, parts = [message.content.get("args")], 0
    while waiting:
        value, parts = waiting.pop(), parts + 1
        if parts > 10 * PLAIN or (isinstance(value, str | list | dict) and len(value) > PLAIN):
            raise ValueError("a candidate takes short texts, lists and dicts only")
        if isinstance(value, int) and abs(value) > 10 * PLAIN:
            raise ValueError(f"a candidate takes whole numbers up to {10 * PLAIN} only")
        waiting += value if isinstance(value, list) else value.values() if isinstance(value, dict) else []


def _without_learning(code: Any) -> Any:
    """Whether a result learns is decided where it is used."""
    if isinstance(code, dict):
        return {key: _without_learning(value) for key, value in code.items() if key != "learns"}
    return [_without_learning(value) for value in code] if isinstance(code, list) else code


# --- what came back, as a recording ----------------------------------------------------------------------------------


def recording_of(plan: Plan, message: Message) -> Recording:
    """A recording in which every record belongs to its step of the plan, and every value has the form it must have.

    Raises:
        Malformed: the message says something that `collect` would never say.
    """
    content = message.content
    if not isinstance(content, dict) or not isinstance(content.get("records"), list):
        raise Malformed("an answer without records")
    if len(content["records"]) != len(plan.steps):
        raise Malformed(f"an answer of {len(content['records'])} records to a plan of {len(plan.steps)} steps")
    if sum(tensor.numel() for tensor in message.tensors.values()) > MAX_NUMBERS:
        raise Malformed(f"an answer of more than {MAX_NUMBERS} numbers")
    reader = _Reader(plan, message.tensors)
    records = [reader.record(number, record) for number, record in enumerate(content["records"])]
    return Recording(records, reader.used, _text(content.get("printed", "")))


class _Reader:
    def __init__(self, plan: Plan, tensors: dict[str, Tensor]):
        self.plan, self.tensors = plan, tensors
        self.used: dict[str, Tensor] = {}
        self.statuses: list[str] = []
        self.parts = 0

    def record(self, number: int, said: Any) -> dict:
        """What was said of one step; what the plan knows is taken from the plan."""
        step = self.plan.steps[number]
        if not isinstance(said, dict) or said.get("status") not in STATUSES:
            raise Malformed(f"a record of step {number} that cannot be read")
        record = {"label": step["label"], "says": step["says"], "status": said["status"]}
        if record["status"] == "ok" and step["label"] is not None:
            record["value"] = self.value(said.get("value"))
        elif record["status"] == "blocked":
            record["by"] = self.earlier(said.get("by"), number)
            if self.statuses[record["by"]] in ("ok", "blocked"):
                raise Malformed(f"a record of step {number} that cannot be read")
        elif record["status"] == "raised":
            kinds = said.get("kinds", [])
            if not isinstance(kinds, list) or len(kinds) > MAX_ITEMS:
                raise Malformed("an error of too many kinds")
            record |= {"type": _text(said.get("type")) or "an error", "kinds": [_text(kind) for kind in kinds]}
            record |= {"error": _text(said.get("error")), "line": _line(said.get("line"))}
        elif record["status"] != "ok":
            record["error"] = _text(said.get("error"))
        if "unloaded" in said:
            record["unloaded"] = self.earlier(said["unloaded"], number)
            if self.plan.steps[record["unloaded"]]["do"] != "load" or self.statuses[record["unloaded"]] == "ok":
                raise Malformed(f"a record of step {number} that cannot be read")
        for fact, known in (("changed", self.plan.tensors), ("called", self.plan.watch)):
            names = said.get(fact, [])
            if not isinstance(names, list) or len(names) > MAX_ITEMS:
                raise Malformed(f"a record of step {number} that cannot be read")
            record[fact] = [name for name in names if isinstance(name, str) and name in known]
        self.statuses.append(record["status"])
        return record

    def earlier(self, index: Any, number: int) -> int:
        if not isinstance(index, int) or isinstance(index, bool) or not 0 <= index < number:
            raise Malformed(f"a record that refers to step {index}")
        return index

    def value(self, said: Any, depth: int = 0) -> dict:
        """One described value."""
        self.parts += 1
        if not isinstance(said, dict) or self.parts > MAX_PARTS or depth > MAX_DEPTH:
            raise Malformed("a value that cannot be read")
        kind = said.get("kind")
        if kind == "tensor":
            return self.tensor(said)
        if kind in ("tuple", "list") and isinstance(said.get("parts"), list):
            return {"kind": kind, "parts": [self.value(part, depth + 1) for part in said["parts"]]}
        if kind == "dict" and isinstance(said.get("parts"), dict):
            return {"kind": kind, "parts": {_text(k): self.value(v, depth + 1) for k, v in said["parts"].items()}}
        if kind == "other":
            return {"kind": kind, "words": _text(said.get("words"))}
        value = said.get("value")
        right = {"NoneType": value is None, "bool": isinstance(value, bool), "str": isinstance(value, str)}
        right["number"] = isinstance(value, int | float) and not isinstance(value, bool)
        if not isinstance(kind, str) or not right.get(kind, False) or (isinstance(value, int) and abs(value) >= 2**63):
            raise Malformed("a value that cannot be read")
        return {"kind": kind, "value": _text(value) if kind == "str" else value}

    def tensor(self, said: dict) -> dict:
        key, device = said.get("key"), said.get("device")
        if not isinstance(key, str) or key not in self.tensors or not isinstance(device, str):
            raise Malformed("a tensor that did not come")
        if key in self.used:  # read again and again it would be as large as many
            raise Malformed("a tensor that stands in two places")
        tensor = self.used[key] = self.tensors[key]
        fact = {"kind": "tensor", "key": key, "shape": list(tensor.shape), "device": _text(device)}
        fact["dtype"] = str(tensor.dtype).removeprefix("torch.")
        fact["requires_grad"] = said.get("requires_grad") is True
        return fact | ({"numpy": True} if said.get("numpy") is True else {})


def _line(said: Any) -> dict | None:
    if not isinstance(said, dict) or not isinstance(said.get("number"), int):
        return None
    return {"function": _text(said.get("function")), "number": said["number"], "source": _text(said.get("source"))}


def _text(said: Any) -> str:
    if not isinstance(said, str):
        raise Malformed("a text that is none")
    return said[:MAX_TEXT].encode("utf-8", "replace").decode()


def nothing_earned(exercise: Exercise, reason: str) -> Verdict:
    """The verdict where nothing could be judged: no points, and why."""
    results = [
        Result(claim.name, claim.says, claim.points, False, "for the same reason" if number else reason)
        for number, claim in enumerate(exercise.claims)
    ]
    return Verdict(exercise.name, exercise.title, tuple(results))


def points_of(verdict: Verdict) -> float:
    """The points as nbgrader takes them: a finite number between 0 and the maximum."""
    points = float(verdict.points)
    return min(max(points, 0.0), verdict.maximum) if math.isfinite(points) else 0.0
