"""The cage's side of a check: take the plan from the grader, carry it out on the notebook's names, send what happened.

The right answers, the claims and the candidates of a bug hunt stay with the grader. A candidate arrives as a proxy:
calling it asks the grader for the result.
"""

import socket
import sys
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor

from encoder_grader.collect import collect
from encoder_grader.wire import Message, pack, receive, send, unpack


def answer(path: str) -> None:
    """Answer the plan that waits at the socket `path`."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(path)
        message = receive(connection)
        content = message.content
        plan = SimpleNamespace(
            steps=content["steps"],
            watch=content["watch"],
            tensors=message.tensors,
            given={name: Proxy(connection, name) for name in content["given"]},
        )
        recording = collect(plan, sys.modules["__main__"].__dict__, content["seconds"])
        facts = {"records": recording.records, "printed": recording.printed}
        send(connection, Message("recording", facts, recording.tensors))


class Proxy:
    """A callable that the grader answers. Its result takes part in autograd as if it had been computed here."""

    def __init__(self, connection: socket.socket, name: str):
        self._connection, self._name = connection, name

    def __repr__(self) -> str:
        return "<a candidate>"

    def __call__(self, *args, **kwargs) -> Any:
        tensors: dict[str, Tensor] = {}
        code = pack([list(args), kwargs], tensors)
        learning = [name for name, tensor in tensors.items() if tensor.requires_grad and torch.is_grad_enabled()]
        reply = self._ask(Message("call", {"name": self._name, "args": code}, tensors))
        number, outputs = reply.content["number"], list(reply.tensors)
        if learning and outputs:
            results = _Remote.apply(self, number, learning, outputs, reply.tensors, *(tensors[n] for n in learning))
            reply.tensors = dict(zip(outputs, results, strict=True))
        return unpack(reply.content["result"], reply.tensors)

    def _ask(self, message: Message) -> Message:
        """Ask, with this process's random state, so that what is drawn there is what would have been drawn here."""
        message.tensors = message.tensors | {"random": torch.get_rng_state()}
        send(self._connection, message)
        reply = receive(self._connection)
        torch.set_rng_state(reply.tensors.pop("random"))
        if reply.kind == "error":
            raise _error(reply.content)
        return reply


class _Remote(torch.autograd.Function):
    """The grader computes the result, and when the time comes its gradient."""

    @staticmethod
    def forward(ctx, proxy, number, learning, outputs, results, *inputs):
        ctx.proxy, ctx.number, ctx.learning, ctx.outputs = proxy, number, learning, outputs
        fresh = tuple(results[name].detach() for name in outputs)
        ctx.mark_non_differentiable(*(tensor for tensor in fresh if not tensor.is_floating_point()))
        return fresh

    @staticmethod
    def backward(ctx, *upstream):
        given = {name: grad for name, grad in zip(ctx.outputs, upstream, strict=True) if grad is not None}
        asked = Message("gradient", {"number": ctx.number, "inputs": ctx.learning}, given)
        gradients = ctx.proxy._ask(asked).tensors
        return None, None, None, None, None, *(gradients.get(name) for name in ctx.learning)


def _error(content: dict) -> Exception:
    """The error that the candidate raised, of its own type where that is a plain one."""
    import builtins

    kind = getattr(builtins, str(content.get("type")), RuntimeError)
    if not (isinstance(kind, type) and issubclass(kind, Exception)):
        kind = RuntimeError
    return kind(str(content.get("message")))
