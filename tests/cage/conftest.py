"""Kernels and small programs in cages, and what they answer."""

import asyncio
import json
import tempfile
from dataclasses import dataclass

import pytest

from encoder_grader.cage import Cage, mounts


def leading_to_python(place: str) -> list[str]:
    """What a place to write in holds from the start: the folders on the way to a Python that lies below it."""
    below = [path.relative_to(place).parts for path in mounts.readable() if path.is_relative_to(place)]
    return sorted({parts[0] for parts in below if parts})


class Notebook:
    """A kernel in a cage (or without one), cell by cell."""

    def __init__(self, cage):
        self.cage, self.loop = cage, asyncio.new_event_loop()
        self.manager = cage.kernel_manager()
        self.wait(self.manager.start_kernel())
        self.client = self.manager.client()
        self.client.start_channels()
        self.wait(self.client.wait_for_ready(timeout=60))

    def wait(self, coroutine):
        return self.loop.run_until_complete(coroutine)

    def run(self, source, timeout=60):
        """What a cell prints, and its value or its error, as text; None when its kernel died."""
        return self.wait(self._run(source, timeout))

    async def _run(self, source, timeout):
        said = []

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] == "error":
                said.append(f"{content['ename']}: {content['evalue']}")
            elif message["msg_type"] in ("execute_result", "display_data"):
                said.append(content["data"]["text/plain"])

        async def death():
            while await self.manager.is_alive():
                await asyncio.sleep(0.05)

        cell = self.client.execute_interactive(source, timeout=timeout, output_hook=hear, allow_stdin=False)
        tasks = [asyncio.ensure_future(cell), asyncio.ensure_future(death())]
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        if tasks[0] not in done:
            return None
        tasks[0].result()
        return "".join(said)

    def restart(self):
        self.client.stop_channels()
        self.wait(self.manager.restart_kernel(now=True))
        self.client = self.manager.client()
        self.client.start_channels()
        self.wait(self.client.wait_for_ready(timeout=60))

    def close(self):
        self.client.stop_channels()
        self.wait(self.manager.shutdown_kernel(now=True))
        self.loop.close()


@pytest.fixture
def notebook():
    """Start a kernel in a cage: `notebook(course=…, limits=…)`, or in a host: `notebook(host)`."""
    open_ones = []

    def start(cage=None, **settings):
        cage = cage or Cage(**settings)
        open_ones.append(cage)
        kernel = Notebook(cage)
        open_ones.append(kernel)
        return kernel

    yield start
    for each in reversed(open_ones):
        each.close()


@dataclass(frozen=True)
class Answer:
    """What a program in a cage printed and said on stderr, its exit code, and why the cage says that it ended."""

    text: str
    words: str
    code: int
    why: str | None

    @property
    def json(self):
        assert self.text, self.words or self.why
        return json.loads(self.text)


@pytest.fixture
def program():
    """Run a Python program in a cage to its end: `program(source, limits=…)`."""

    def run(source, *arguments, cage=None, **settings):
        opened = cage or Cage(**settings)
        try:
            with tempfile.TemporaryFile("w+") as out:
                process = opened.run(["-c", source, *map(str, arguments)], stdout=out.fileno())
                code = process.wait(timeout=60)
                out.seek(0)
                return Answer(out.read(), opened.last_words(), code, opened.why_dead())
        finally:
            if cage is None:
                opened.close()

    return run
