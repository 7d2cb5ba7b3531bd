"""Messages between the grader and the cage: plain JSON and tensors, in bounded size, over a unix socket.

Both sides use this module. What it reads is checked in form only; what it means, the reader checks.
"""

import json
import socket
import struct
from dataclasses import dataclass, field
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

MAX_JSON = 8 * 2**20  # bytes
MAX_TENSORS = 96 * 2**20  # bytes; a recording holds at most 10^7 numbers
MAX_NAMES = 10_000  # of tensors in one message,
MAX_HEADER = 2 * 2**20  # bytes of what safetensors says of them
MAX_DEPTH = 12  # of nested values
MAX_AXES = 64  # of a tensor
LENGTHS = struct.Struct("!II")


class Malformed(Exception):
    """A message that is no message of ours, or too large."""


@dataclass
class Message:
    """One message: a kind, JSON, and named tensors."""

    kind: str
    content: Any = None
    tensors: dict[str, Tensor] = field(default_factory=dict)


def send(connection: socket.socket, message: Message) -> None:
    """Send one message.

    Raises:
        Malformed: it is larger than what the other side takes.
    """
    names, complex_ones, plain = list(message.tensors), [], {}
    for number, name in enumerate(names):
        tensor = message.tensors[name].detach()
        if tensor.is_complex():  # safetensors has no complex numbers
            complex_ones.append(number)
            tensor = torch.view_as_real(tensor.resolve_conj())
        plain[str(number)] = tensor.contiguous().clone()
    head = {"kind": message.kind, "content": message.content, "names": names, "complex": complex_ones}
    text, numbers = json.dumps(head).encode(), save(plain)
    if len(text) > MAX_JSON or len(numbers) > MAX_TENSORS:
        raise Malformed(f"a message of {len(text) + len(numbers)} bytes is too large")
    connection.sendall(LENGTHS.pack(len(text), len(numbers)) + text + numbers)


def receive(connection: socket.socket) -> Message:
    """Receive one message.

    Raises:
        Malformed: what came is not one, or the connection ended.
        TimeoutError: nothing came within the socket's timeout.
    """
    text_length, numbers_length = LENGTHS.unpack(_read(connection, LENGTHS.size))
    if text_length > MAX_JSON or numbers_length > MAX_TENSORS:
        raise Malformed(f"a message of {text_length + numbers_length} bytes is too large")
    text, numbers = _read(connection, text_length), _read(connection, numbers_length)
    try:
        head = json.loads(text)
        names, complex_ones = head["names"], head["complex"]
        if max(len(names), len(complex_ones)) > MAX_NAMES or int.from_bytes(numbers[:8], "little") > MAX_HEADER:
            raise Malformed(f"a message of more than {MAX_NAMES} tensors")
        plain, complex_ones, tensors = load(numbers), set(complex_ones), {}
        if len(set(names)) != len(names) or len(plain) != len(names):
            raise Malformed(f"{len(plain)} tensors under {len(names)} names")
        for number, name in enumerate(names):
            tensor = plain[str(number)]
            tensors[name] = torch.view_as_complex(tensor) if number in complex_ones else tensor
            if tensor.dim() > MAX_AXES:
                raise Malformed(f"a tensor of {tensor.dim()} axes")
        return Message(str(head["kind"]), head["content"], tensors)
    except (ValueError, KeyError, TypeError, RecursionError, RuntimeError, SafetensorError) as error:
        raise Malformed(f"a message that cannot be read: {type(error).__name__}") from error


def _read(connection: socket.socket, length: int) -> bytes:
    parts = []
    while length:
        part = connection.recv(min(length, 2**20))
        if not part:
            raise Malformed("the connection ended in the middle of a message")
        parts.append(part)
        length -= len(part)
    return b"".join(parts)


def pack(value: Any, tensors: dict[str, Tensor], depth: int = 0) -> Any:
    """A value as JSON: tensors go into `tensors`, of everything else only plain Python is taken.

    Raises:
        TypeError: it holds something else.
    """
    if isinstance(value, Tensor):
        name = str(len(tensors))
        tensors[name] = value
        return {"tensor": name, "learns": value.requires_grad}
    if value is None or isinstance(value, bool | int | float | str):
        return {"plain": value}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if depth < MAX_DEPTH and isinstance(value, list | tuple):
        return {"list" if isinstance(value, list) else "tuple": [pack(v, tensors, depth + 1) for v in value]}
    if depth < MAX_DEPTH and isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {"dict": {key: pack(v, tensors, depth + 1) for key, v in value.items()}}
    raise TypeError(f"a {type(value).__name__} cannot be handed over; tensors, numbers, and lists or dicts of them can")


def unpack(code: Any, tensors: dict[str, Tensor], depth: int = 0) -> Any:
    """The value that `pack` made into JSON.

    Raises:
        Malformed: it is no such JSON.
    """
    if depth > MAX_DEPTH or not isinstance(code, dict) or not code:
        raise Malformed("a value that cannot be read")
    kind, value = next(iter(code.items()))
    if kind == "tensor" and isinstance(value, str) and value in tensors:
        tensor = tensors[value]
        return tensor.requires_grad_() if code.get("learns") is True and tensor.is_floating_point() else tensor
    if kind == "plain" and (value is None or isinstance(value, bool | int | float | str)):
        return value
    if kind == "dtype" and isinstance(value, str) and isinstance(getattr(torch, value, None), torch.dtype):
        return getattr(torch, value)
    if kind in ("list", "tuple") and isinstance(value, list):
        return (list if kind == "list" else tuple)(unpack(v, tensors, depth + 1) for v in value)
    if kind == "dict" and isinstance(value, dict):
        return {key: unpack(v, tensors, depth + 1) for key, v in value.items()}
    raise Malformed("a value that cannot be read")
