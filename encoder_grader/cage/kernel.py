"""The kernel of a caged notebook: ipykernel, on sockets that the grader made and this process inherits.

So no folder of the host has to be open for writing. Runs as `python -s -P kernel.py CONNECTION_FILE LISTENERS`, where
LISTENERS is JSON: the address of each channel → the number of its listening socket.
"""

import contextlib
import json
import os
import shutil
import sys
from pathlib import Path

LONGEST = 16 * 2**20  # bytes of a message; the grader breaks off at twice as much
SHORT = 10**6  # characters that stay of a text that is too long


def forget_editable_installs() -> None:
    """Import only what lies in Python's own folders and in the course's: an editable install leads elsewhere."""
    own = (sys.prefix, sys.base_prefix, os.environ["PYTHONPATH"])
    sys.path[:] = [place for place in sys.path if any(Path(place).is_relative_to(folder) for folder in own)]
    sys.path.append(os.getcwd())  # a module that a cell wrote, last: it shadows nothing
    for hooks in (sys.meta_path, sys.path_hooks):
        hooks[:] = [hook for hook in hooks if not str(getattr(hook, "__module__", "")).startswith("__editable__")]


def take_font_list(own: Path) -> None:
    """Put matplotlib's list of fonts where it looks for it."""
    cache = Path.home() / ".cache" / "matplotlib"
    for file in own.glob("fontlist-*.json"):
        cache.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, cache)


def take_listeners(listeners: dict[str, int]) -> None:
    """Let a ZeroMQ socket that binds to one of these addresses take the socket that already listens there."""
    import zmq

    plain_bind = zmq.Socket.bind

    def bind(self, address):
        if address in listeners:
            number = listeners.pop(address)
            os.set_inheritable(number, False)
            self.setsockopt(zmq.USE_FD, number)
        if not listeners:
            zmq.Socket.bind = plain_bind
        return plain_bind(self, address)

    zmq.Socket.bind = bind


def shorten(message: dict) -> None:
    """Cut what a cell says to a size that the grader takes. Whoever gets round this loses the connection instead."""
    content = message["content"]
    cut = "\n… the rest is left out: it is too long"
    for name, value in content.items():
        if isinstance(value, str):
            content[name] = value[:SHORT] + cut * (len(value) > SHORT)
        elif name == "data":
            content[name] = {"text/plain": str(value.get("text/plain", ""))[:SHORT] + cut}
        elif name == "traceback":
            content[name] = [str(line)[:1000] for line in value[:100]]
        elif name == "metadata":
            content[name] = {}


def bounded_session(app):
    """The session of a kernel, which signs messages, with a bound to their size."""
    from jupyter_client.session import Session

    class BoundedSession(Session):
        def serialize(self, msg, ident=None):
            parts = super().serialize(msg, ident)
            if sum(map(len, parts)) > LONGEST:
                shorten(msg)
                parts = super().serialize(msg, ident)
            return parts

    return BoundedSession(parent=app)


def bounded_stream():
    """What a kernel makes its stdout and stderr of: a loop that prints faster than it is sent fills no memory."""
    from ipykernel.iostream import OutStream

    class BoundedStream(OutStream):
        waiting = 0  # characters that are still to be sent

        def write(self, string):
            whole = string
            if isinstance(string, str):  # else the class itself objects
                string = string[: LONGEST - self.waiting]
                self.waiting += len(string)
            super().write(string)
            return len(whole)

        def _rotate_buffers(self):
            self.waiting = 0
            return super()._rotate_buffers()

    return BoundedStream


def main(connection_file: str, listeners: dict[str, int]) -> None:
    forget_editable_installs()
    take_font_list(Path(connection_file).parent)
    take_listeners(listeners)
    from ipykernel import iostream
    from ipykernel.kernelapp import IPKernelApp

    iostream.OutStream = bounded_stream()  # the kernel asks for it by this name
    sys.argv[1:] = []
    app = IPKernelApp.instance()
    app.session = bounded_session(app)
    app.initialize(["-f", connection_file, "--HistoryManager.enabled=False"])
    app.shell._tee = lambda channel: contextlib.nullcontext()  # else IPython keeps all that is ever printed
    app.debug_shell_socket.close()  # for a debugger; it would look for the shell's address on the host for ever
    app.start()


if __name__ == "__main__":
    main(sys.argv[1], json.loads(sys.argv[2]))
