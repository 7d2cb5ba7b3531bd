"""A kernel in a cage works as a kernel does, and cannot harm the one who listens to it."""

import asyncio
import os
import signal

import zmq

from encoder_grader.cage import Limits
from encoder_grader.cage.limits import MB

from .conftest import leading_to_python

BIG = "it sent more than 200 MB of messages"


def test_a_cell_runs_and_sees_the_course(notebook, tmp_path):
    module = tmp_path / "given.py"
    module.write_text("number = 17")
    caged = notebook(course={"encoder_lib/given.py": module})
    assert caged.run("from encoder_lib.given import number; number + 2") == "19"
    assert "No module named 'encoder_lib.attention'" in caged.run("import encoder_lib.attention")
    assert "No module named 'encoder_grader'" in caged.run("import encoder_grader")
    assert caged.run("import torch; torch.arange(3) @ torch.arange(3)") == "tensor(5)"
    assert caged.run("torch.set_num_threads(4); (torch.ones(300, 300) @ torch.ones(300, 300)).sum()").startswith(
        "tensor(2"
    )
    assert "Figure" in caged.run("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    assert caged.run("!echo $USER").strip() == "student"
    assert caged.run("%%writefile helper.py\nnumber = 23") == "Writing helper.py\n"
    assert caged.run("import helper; helper.number") == "23"
    assert caged.cage.why_dead() is None


def test_matplotlib_finds_the_list_of_fonts_that_the_grader_has(notebook, tmp_path, monkeypatch):
    (tmp_path / "fontlist-v0.json").write_text("{}")
    monkeypatch.setenv("MPLCONFIGDIR", str(tmp_path))
    assert notebook().run("import os; os.listdir(os.path.expanduser('~/.cache/matplotlib'))") == "['fontlist-v0.json']"


def test_an_interrupt_reaches_the_cell(notebook):
    caged = notebook()

    async def interrupted():
        cell = asyncio.ensure_future(caged._run("import time\nprint('begun')\ntime.sleep(60)", 60))
        await asyncio.sleep(1)
        await caged.manager.interrupt_kernel()
        return await cell

    assert caged.wait(interrupted()) == "begun\nKeyboardInterrupt: "
    assert caged.run("1 + 1") == "2"


def test_a_restart_finds_nothing_of_before(notebook):
    caged = notebook()
    caged.run("open('/tmp/left', 'w').write('left'); kept = 1; import subprocess; subprocess.Popen(['sleep', '60'])")
    caged.restart()
    assert caged.run("import os; os.listdir('/tmp'), os.listdir('/student')").startswith(
        f"({leading_to_python('/tmp')}, ["
    )
    assert "NameError" in caged.run("kept")
    assert caged.run("sorted(name for name in os.listdir('/proc') if name.isdigit())") == "['1', '2']"


def test_a_kernel_that_dies_says_why_and_can_be_started_again(notebook):
    caged = notebook()
    assert caged.run("import ctypes; ctypes.string_at(0)") is None
    assert caged.cage.why_dead() == "its process was killed by signal 11 (segmentation fault)"
    caged.restart()
    assert caged.run("1 + 1") == "2"
    assert caged.run("import os; os._exit(7)") is None
    assert caged.cage.why_dead() == "its process ended itself, with exit code 7"


def test_a_kernel_shuts_down_as_jupyter_asks_it_to(notebook):
    caged = notebook()
    caged.wait(caged.manager.shutdown_kernel(now=False))
    assert not caged.wait(caged.manager.is_alive())
    assert caged.cage.why_dead() == "its process ended itself, with exit code 0"


def test_a_loop_that_ignores_every_signal_can_be_ended(notebook):
    caged = notebook()
    caged.client.execute("import signal\nfor n in (2, 15): signal.signal(n, signal.SIG_IGN)\nwhile True: pass")
    caged.cage.signal(signal.SIGINT)
    caged.wait(caged.manager.shutdown_kernel(now=True))
    assert caged.cage.why_dead() is None  # the grader wanted it


def test_too_long_an_output_is_cut_and_the_next_cell_goes_on(notebook):
    caged = notebook()
    said = caged.run("print('x' * 40_000_000)")
    assert said.startswith("xxx") and said.endswith("it is too long") and len(said) < 1_100_000
    assert len(caged.run("raise ValueError('x' * 40_000_000)")) < 1_100_000
    assert len(caged.run("class Long:\n    def __repr__(self): return 'x' * 40_000_000\nLong()")) < 1_100_000
    assert caged.run("1 + 1") == "2"


def test_a_flood_of_messages_ends_the_kernel_and_not_the_grader(notebook):
    caged = notebook(limits=Limits(messages=200 * MB))
    source = """
socket = get_ipython().kernel.iopub_thread.socket
while True:
    socket.send_multipart([bytes(10**7)] * 50)  # each part is small enough
"""
    assert caged.run(source) is None
    assert caged.cage.why_dead() == BIG


def test_sockets_and_keys_stay_outside_of_the_cage(notebook):
    caged = notebook()
    found = eval(caged.run("import os; os.listdir('/run/cage'), open('/run/cage/connection.json').read()"))
    shown = {name for name in found[0] if not name.startswith("fontlist-")}
    assert shown == {"connection.json", "group", "kernel.py", "launch.py", "passwd", "probe.py"}
    assert caged.manager.session.key.decode() in found[1]
    channels = (caged.client.shell_channel, caged.client.iopub_channel, caged.client.control_channel)
    for channel in channels:
        assert channel.socket.getsockopt(zmq.MAXMSGSIZE) == 32 * 2**20
        assert channel.socket.getsockopt(zmq.RCVHWM) == 200
    listening = [name for name in os.listdir(caged.cage.folder) if name.startswith("k-")]
    assert len(listening) == 5
    assert all((caged.cage.folder / name).stat().st_mode & 0o077 == 0 for name in listening)
