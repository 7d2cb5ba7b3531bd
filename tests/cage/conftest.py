"""Kernels in cages, and what their cells answer."""

import asyncio

import pytest

from encoder_grader.cage import Cage


class Notebook:
    """A kernel in a cage, cell by cell."""

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
        said = []

        def hear(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                said.append(content["text"])
            elif message["msg_type"] == "error":
                said.append(f"{content['ename']}: {content['evalue']}")
            elif message["msg_type"] in ("execute_result", "display_data"):
                said.append(content["data"]["text/plain"])

        execute = self.client.execute_interactive(source, timeout=timeout, output_hook=hear, allow_stdin=False)
        try:
            self.wait(execute)
        except RuntimeError:
            return None
        return "".join(said)

    def close(self):
        self.client.stop_channels()
        self.wait(self.manager.shutdown_kernel(now=True))
        self.loop.close()


@pytest.fixture
def notebook():
    """Start a kernel in a cage: `notebook(course=…, limits=…)`."""
    open_ones = []

    def start(**settings):
        cage = Cage(**settings)
        open_ones.append(cage)
        kernel = Notebook(cage)
        open_ones.append(kernel)
        return kernel

    yield start
    for each in reversed(open_ones):
        each.close()
