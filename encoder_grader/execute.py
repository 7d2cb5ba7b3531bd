"""Run a submitted notebook: its cells in a cage, its checks judged outside.

Takes the place of nbgrader's Execute in `nbgrader_config.py`. Each cell runs in a kernel of the cage. A test cell
`check("…")` is not run as it stands: the grader makes the challenge, the kernel carries it out on what the notebook
defined, and the grader judges what comes back and writes the cell's outputs, from which nbgrader reads the points.

When a cell takes the kernel with it, a new kernel starts and runs the earlier cells again without it, so that what is
right before and after is graded.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import importlib
import json
import re
import threading
import time
from pathlib import Path
from queue import Empty
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_output, output_from_msg
from nbgrader.exchange.default import Exchange
from nbgrader.preprocessors import NbGraderPreprocessor
from nbgrader.utils import is_grade, is_locked, is_solution
from traitlets import Bool, Integer

from encoder_grader.autograde import REPORT, STAGED
from encoder_grader.built_ins import built_ins_called
from encoder_grader.cage import Cage, CannotCage, Limits, NoCage
from encoder_grader.collect import Recording
from encoder_grader.exercise import Exercise, chapters, find
from encoder_grader.judge import Judge
from encoder_grader.trusted import challenge, exchange, nothing_earned, points_of, secret_of, seed_of
from encoder_grader.verdict import Verdict
from encoder_grader.wire import Malformed

HERE = Path(__file__).parent
LIBRARY = HERE.parent / "encoder_lib"
CHECK = re.compile(r"\s*check\(\s*(['\"])([a-z_]+\.[a-z_]+)\1\s*\)\s*")
RESTARTS = 3  # of a notebook's kernel
KEPT_OUTPUT = 200_000  # characters of one cell's outputs that the graded notebook keeps,
KEPT_IN_ALL = 5_000_000  # and of all its cells', as `weight` counts them
SHORT = 300  # characters of an error where no more is kept
FRAMES = 20  # of an error's traceback that are kept,
LONGEST_FRAME = 5_000  # and characters of each
FLOOD = 20_000_000  # characters of one cell's outputs that stop it
READY = 60  # seconds for a kernel to start
SAFE = ("text/plain", "image/png", "image/jpeg")  # kinds of output that cannot run in a reader's browser
# What a terminal takes for more than text: \x1b[…, \x1b]… up to its end, a lone \x1b. No part of it can be read in two
# ways, so a search is linear. Of these only the colours are kept: numbers, those of more than 16 colours complete.
ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]?|\][^\x07\x1b\n]*(?:\x07|\x1b\\)?)?")
NUMBER = r"(?:[34]8;5;[0-9]{1,3}|[34]8;2;[0-9]{1,3};[0-9]{1,3};[0-9]{1,3}|(?!0?[34]8)[0-9]{0,3})"
COLOUR = re.compile(rf"\x1b\[{NUMBER}(?:;{NUMBER}){{0,5}}m")


class Fault(Exception):
    """A cell that took the kernel with it, in words that follow "your code": "ran for more than 60 seconds"."""


class Execute(NbGraderPreprocessor):
    """Execute a submission in a cage, with verdicts made outside it."""

    timeout = Integer(60, help="Seconds that one cell may run, and one check.").tag(config=True)
    total_timeout = Integer(600, help="Seconds that one notebook may run.").tag(config=True)
    sandbox = Bool(True, help="False runs a student's code without a cage, with your rights.").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict) -> tuple[NotebookNode, dict]:
        """Run the notebook; its code cells get their outputs."""
        if not self.sandbox:
            self.log.warning("No sandbox: this submission's code runs with your rights.")
        error: list[BaseException] = []

        def run():
            try:
                asyncio.run(self._run(nb, resources))
            except BaseException as problem:
                error.append(problem)

        # In a thread of its own: formgrader calls this where an event loop is already running.
        thread = threading.Thread(target=run, name="execute a submission")
        thread.start()
        thread.join()
        if error:
            raise error[0]
        return nb, resources

    async def _run(self, nb: NotebookNode, resources: dict) -> None:
        told = resources["nbgrader"]
        chapter = told["assignment"].partition("_")[2]
        course = self.parent.parent.coursedir
        class_folder = Path(course.root)
        report = class_folder / STAGED / told["student"] / told["assignment"] / REPORT
        parts = (told["assignment"], told["notebook"], told["student"], json.loads(report.read_text())["sha256"])
        secret = secret_of(class_folder)
        kernel = Kernel(_visible_to(chapter), [class_folder, Path(Exchange(parent=self).root)], self.sandbox)
        try:
            await Notebook(nb, kernel, self, lambda exercise: seed_of(secret, *parts, exercise)).run()
        finally:
            await kernel.close()


def _visible_to(chapter: str) -> dict[str, Path]:
    """What a chapter's notebook may import: the way to answer a check, and the reference of the chapters before."""
    order = importlib.import_module("encoder_lib").CHAPTERS
    later = order[order.index(chapter) :] if chapter in order else ()
    library = [path for path in LIBRARY.iterdir() if path.suffix == ".py" and path.stem not in later]
    return {
        "encoder_grader/__init__.py": HERE / "check_stub.py",
        **{f"encoder_grader/{name}.py": HERE / f"{name}.py" for name in ("answering", "collect", "wire")},
        **{f"encoder_lib/{path.name}": path for path in library},
        "encoder_lib/data": LIBRARY / "data",
    }


class Notebook:
    """One run of a notebook through as many kernels as it takes."""

    def __init__(self, nb: NotebookNode, kernel: Kernel, limits: Execute, seed_of_exercise):
        self.cells = [cell for cell in nb.cells if cell.cell_type == "code"]
        self.kernel, self.limits, self.seed_of_exercise = kernel, limits, seed_of_exercise
        self.end = time.monotonic() + limits.total_timeout
        self.room = Room()
        self.restarts = 0
        self.stopped = ""  # why nothing runs any more
        self.ran: list[NotebookNode] = []  # cells that a new kernel has to run again

    async def run(self) -> None:
        """Run all cells in order."""
        for number, cell in enumerate(self.cells):
            cell.outputs, cell.execution_count = [], None
            if not await self._ready():
                _instead(cell, f"Not run: {self.stopped}.")
                continue
            exercise = exercise_of(cell)
            try:
                if exercise is not None:
                    show(cell, await self._check(exercise, number))
                else:
                    cell.outputs = self.room.keep(await self.kernel.run(cell.source, self._seconds()))
                    self.ran.append(cell)
            except Fault as fault:
                await self._go_on_without(cell, str(fault))

    async def _ready(self) -> bool:
        """A kernel in which every earlier cell has run; False when nothing more is to be run."""
        while not self.stopped and not self.kernel.running():
            if reason := self.kernel.why_dead():  # after a cell was done
                await self._go_on_without(self.ran.pop() if self.ran else None, reason)
                continue
            await self.kernel.start()
            for cell in list(self.ran):
                try:
                    await self.kernel.run(cell.source, self._seconds())
                except Fault as fault:
                    self.ran.remove(cell)
                    await self._go_on_without(cell, str(fault))
                    break
        return not self.stopped

    async def _go_on_without(self, cell: NotebookNode | None, why: str) -> None:
        """End a kernel that a cell has spoilt: the next one starts without that cell, unless there were too many."""
        if cell is not None:
            _instead(cell, f"Your code {why}. It was stopped, and the rest of the notebook was run without this cell.")
        await self.kernel.stop()
        self.restarts += 1
        if time.monotonic() > self.end:
            self.stopped = f"your notebook ran for more than {self.limits.total_timeout} seconds in all"
        elif self.restarts > RESTARTS:
            self.stopped = f"your notebook ended its kernel {self.restarts} times, so what follows was not run"

    async def _check(self, exercise: Exercise, number: int) -> Verdict:
        """Challenge, collect in the cage, judge here."""
        plan = challenge(exercise, self.seed_of_exercise(exercise.name))
        try:
            recording = await self.kernel.answer(plan, number, self._seconds())
        except Malformed as malformed:
            return nothing_earned(exercise, f"your notebook answered the check with {malformed}")
        cells = [cell.source for cell in self.ran]
        try:
            in_source = built_ins_called(cells, exercise.reference, exercise.forbidden) if exercise.forbidden else {}
            return Judge(exercise, plan).verdict(recording, in_source)
        except Exception:  # no answer stops the class; the log keeps what it did
            self.limits.log.exception("%s could not be judged", exercise.name)
            return nothing_earned(exercise, "your answer could not be judged; ask your instructor to look at it")

    def _seconds(self) -> float:
        left = self.end - time.monotonic()
        if left <= 0:
            raise Fault(f"ran for more than {self.limits.total_timeout} seconds in all")
        return min(self.limits.timeout, left)


def exercise_of(cell: NotebookNode) -> Exercise | None:
    """The exercise that a test cell checks; None for every other cell."""
    if is_grade(cell) and is_locked(cell) and not is_solution(cell) and (match := CHECK.fullmatch(cell.source)):
        name = match[2]
        if name.partition(".")[0] in chapters():
            with contextlib.suppress(ValueError):
                return find(name)
    return None


def _instead(cell: NotebookNode, sentence: str) -> None:
    """Say in a cell why it was not run, or not to its end; a check earns nothing then."""
    exercise = exercise_of(cell)
    if exercise is not None:
        show(cell, nothing_earned(exercise, sentence[:-1]))
    else:
        cell.outputs = [new_output("error", ename="Stopped", evalue=sentence, traceback=[sentence])]


def show(cell: NotebookNode, verdict: Verdict) -> None:
    """Write a verdict into its cell: to be read, and then the points, which nbgrader reads."""
    both = {"text/plain": _text(verdict), "text/html": _text(verdict._repr_html_())}
    cell.outputs = [
        new_output("display_data", data=both),
        new_output("execute_result", data={"text/plain": repr(points_of(verdict))}, execution_count=None),
    ]


class Kernel:
    """A kernel in a cage of its own, started anew as often as needed."""

    def __init__(self, course: dict[str, Path], hide: list[Path], sandbox: bool):
        self.course, self.hide, self.sandbox = course, hide, sandbox
        self.cage = self.manager = self.client = None

    def running(self) -> bool:
        return self.client is not None and self.cage.why_dead() is None

    def why_dead(self) -> str | None:
        """Why it ended, in words that follow "your code"; None where it was never started, or was ended here."""
        return _in_the_past(reason) if self.client is not None and (reason := self.cage.why_dead()) else None

    async def start(self) -> None:
        """Start it.

        Raises:
            CannotCage: this machine can enforce no cage.
        """
        await self.stop()
        self.cage = Cage(self.course, Limits(), hide=self.hide) if self.sandbox else NoCage(self.course, Limits())
        self.manager = self.cage.kernel_manager()
        await self.manager.start_kernel()
        self.client = self.manager.client()
        self.client.start_channels()
        try:
            await self.client.wait_for_ready(timeout=READY)
        except RuntimeError as error:
            words = self.cage.last_words()[-500:]
            raise CannotCage(f"the kernel did not start in the cage: {error} {words}".strip()) from error

    async def stop(self) -> None:
        """End it, with everything it started."""
        if self.client is not None:
            self.client.stop_channels()
        if self.manager is not None:
            self.manager.context.destroy(linger=0)  # else it waits for ever for sockets to close, at some later time
        if self.cage is not None:
            self.cage.close()
        self.cage = self.manager = self.client = None

    close = stop

    async def run(self, source: str, seconds: float) -> list[NotebookNode]:
        """Run a cell.

        Raises:
            Fault: it ended the kernel, or had to be ended with it.
        """
        message = self.client.execute(source, allow_stdin=False, stop_on_error=False)
        outputs = Outputs()
        if await self._until_idle(message, outputs, seconds):
            return outputs.kept()
        self.cage.signal(2)  # like the learner's own Ctrl-C
        if not await self._until_idle(message, outputs, 5):
            raise Fault(f"ran for more than {seconds:.0f} seconds and could not be interrupted")
        words = f"Your code ran for more than {seconds:.0f} seconds and was interrupted."
        return [*outputs.kept(), new_output("error", ename="CellTimeoutError", evalue=words, traceback=[words])]

    async def answer(self, plan, number: int, seconds: float) -> Recording:
        """Have the notebook answer a plan.

        Raises:
            Fault: that ended the kernel, or took too long.
            Malformed: what came back is no answer.
        """
        name = f"check-{number}"
        found: list[Any] = []
        deadline = time.monotonic() + seconds

        def serve():
            try:
                listener.settimeout(seconds)
                connection, _ = listener.accept()
                with connection:
                    found.append(exchange(plan, connection, deadline))
            except BaseException as error:
                found.append(error)

        with self.cage.listen(name) as listener:
            server = threading.Thread(target=serve, name="answer a check", daemon=True)
            server.start()
            path = f"{self.cage.exchange_inside}/{name}"
            code = f"__import__('encoder_grader.answering', fromlist=['answer']).answer({path!r})"
            message = self.client.execute(code, silent=True, store_history=False, allow_stdin=False)
            outputs = Outputs()
            idle = await self._until_idle(message, outputs, seconds)
            if not idle:
                raise Fault(f"ran for more than {seconds:.0f} seconds in this check")
            if not found:  # the kernel is done, and said nothing
                await asyncio.sleep(0.2)
        server.join(seconds)  # what it still computes for a candidate is bounded
        if not found:
            raise Malformed(f"no answer ({outputs.error() or 'it said nothing'})")
        if isinstance(found[0], BaseException):
            raise Malformed(f"no answer ({outputs.error() or str(found[0])[:300] or type(found[0]).__name__})")
        return found[0]

    async def _until_idle(self, message: str, outputs: Outputs, seconds: float) -> bool:
        """Take in what a request puts out; False when the time is up before it is done.

        Raises:
            Fault: the kernel is gone, or puts out too much.
        """
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                said = await self.client.get_iopub_msg(timeout=min(0.25, seconds))
            except Empty:
                if reason := self.cage.why_dead():
                    raise Fault(_in_the_past(reason)) from None
                continue
            except Exception as error:  # not a message of Jupyter's
                raise Fault(f"sent what is no message of a kernel ({type(error).__name__})") from None
            try:
                if said["parent_header"].get("msg_id") != message:
                    continue
                if said["msg_type"] == "status" and said["content"].get("execution_state") == "idle":
                    if reason := self.cage.look():  # what a cell uses is not to cost the next one
                        raise Fault(_in_the_past(reason))
                    return True
                outputs.take(said)
            except Fault:
                raise
            except Exception as error:  # signed by the kernel, and still none
                raise Fault(f"sent what is no message of a kernel ({type(error).__name__})") from None
        return False


def _in_the_past(reason: str) -> str:
    """Why a kernel is dead, as what the learner's code did."""
    return "ended its kernel: " + reason


class Outputs:
    """What a cell puts out, as far as a graded notebook keeps it: bounded, and of kinds that run nothing."""

    def __init__(self):
        self.outputs: list[NotebookNode] = []
        self.failed: NotebookNode | None = None  # the last error
        self.size = 0
        self.cut = False

    def take(self, message: dict) -> None:
        """Take in one message of the kernel.

        Raises:
            Fault: it puts out more than is read.
        """
        kind, content = message["msg_type"], message["content"]
        if kind == "clear_output":
            self.outputs, self.failed = [], None
        if kind not in ("stream", "display_data", "execute_result", "error"):
            return
        self.size += len(str(content))
        if self.size > FLOOD:
            raise Fault(f"wrote more than {FLOOD // 10**6} MB of output")
        output = clean(output_from_msg(message))
        last = self.outputs[-1] if self.outputs else None
        if output is None:
            return
        if output.output_type == "error":  # short, and the last that is said
            self.failed = output
            return
        if self.cut or self.size > KEPT_OUTPUT:
            self.cut = True
            return
        if output.output_type == "stream" and last and last.output_type == "stream" and last.name == output.name:
            last.text += output.text
        else:
            self.outputs.append(output)

    def kept(self) -> list[NotebookNode]:
        words = f"[more than {KEPT_OUTPUT} characters of output: only the first are kept]\n"
        first = [new_output("stream", name="stdout", text=words)] if self.cut else []
        return [*first, *self.outputs, *([self.failed] if self.failed else [])]

    def error(self) -> str:
        """The error that a cell ended with, if it did."""
        return f"{self.failed.ename}: {self.failed.evalue}"[:SHORT] if self.failed else ""


class Room:
    """What a graded notebook has room for, over all its cells."""

    def __init__(self):
        self.used = 0

    def keep(self, outputs: list[NotebookNode]) -> list[NotebookNode]:
        """A cell's outputs, or, once there is no more room, a sentence and the beginning of its error."""
        self.used += sum(map(weight, outputs))
        if not outputs or self.used <= KEPT_IN_ALL:
            return outputs
        words = f"[not kept: the outputs of your notebook are too long together ({KEPT_IN_ALL // 10**6} MB)]\n"
        errors = [(o.ename[:SHORT], o.evalue[:SHORT]) for o in outputs if o.output_type == "error"]
        short = [new_output("error", ename=name, evalue=says, traceback=[says]) for name, says in errors]
        return [new_output("stream", name="stdout", text=words), *short]


def weight(output: NotebookNode) -> int:
    """The characters of an output, more for what takes long to show: a new output, a colour, what HTML escapes."""
    text = json.dumps(output)
    return len(text) + 300 + 100 * text.count("\\u001b") + 10 * sum(map(text.count, "&<>'\""))


def clean(output: NotebookNode) -> NotebookNode | None:
    """An output without what a browser could run, and without metadata; None where nothing is left."""
    if output.output_type == "stream":
        return new_output("stream", name="stderr" if output.name == "stderr" else "stdout", text=_text(output.text))
    if output.output_type == "error":
        frames = output.traceback
        if len(frames) > FRAMES:  # where it began, and what it came to
            frames = [*frames[: FRAMES // 2], "…", *frames[-FRAMES // 2 :]]
        frames = [_text(str(frame)[-LONGEST_FRAME:]) for frame in frames]
        return new_output("error", ename=_cut(output.ename), evalue=_cut(output.evalue), traceback=frames)
    data = {kind: _text(output.data[kind]) for kind in SAFE if isinstance(output.data.get(kind), str)}
    for kind in list(data):
        if kind.startswith("image/") and not _is_base64(data[kind]):
            del data[kind]
    if not data:
        return None
    more = {"execution_count": None} if output.output_type == "execute_result" else {}
    return new_output(output.output_type, data=data, **more)


def _cut(text: Any) -> str:
    return _text(str(text)[:LONGEST_FRAME])


def _text(said: Any) -> str:
    """A text of the kernel's as a file and a page can hold it: of what a terminal would do, only colours are left."""
    text = str(said).encode("utf-8", "replace").decode()  # half of a pair of surrogates cannot be written
    return ESCAPE.sub(lambda found: found[0] if COLOUR.fullmatch(found[0]) else "", text)


def _is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", ""), validate=True)
    except (ValueError, binascii.Error):
        return False
    return True
