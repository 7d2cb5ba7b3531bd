"""The built book, a server for it, and a browser that is allowed to reach nothing else."""

import functools
import shutil
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import sync_playwright

ROOT = Path(__file__).resolve().parents[2]
HTML = ROOT / "_build" / "html"
CHROMIUM_OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture(scope="session")
def html():
    """The folder of the built book; it is built first when it is not up to date, and a warning fails that."""
    built = subprocess.run([sys.executable, "course.py", "book"], cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, f"the book does not build:\n{built.stdout}\n{built.stderr}"
    return HTML


class _QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture(scope="session")
def address(html):
    """Where the built book is served."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_QuietHandler, directory=str(html)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()


@contextmanager
def chromium():
    """The browser of the playwright package; until it is closed, nothing else in this thread can run an event loop."""
    executable = shutil.which("chromium")
    assert executable, "no Chromium here; this brings it: apt-get install chromium"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=CHROMIUM_OPTIONS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def browser():
    with chromium() as browser:
        yield browser
