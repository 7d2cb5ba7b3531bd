"""The submissions: each a kind of fault, with the points that are right for it.

A *damage* and a *runtime* fault is done to work that is right in every exercise: it keeps all points but those of what
the fault itself makes wrong. A *cheat* is done to work that is right in the last exercise alone, which keeps its points;
whatever it earns beyond them is stolen.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import nbformat
import torch
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output
from nbgrader.utils import is_grade, is_solution

from encoder_grader.accuracy.cases import ROOT, answer_cells, assignment_of
from encoder_grader.checking import LOCAL_SEED
from encoder_grader.exercise import exercises
from encoder_grader.sample_class import fill_in, without_marks
from encoder_grader.trusted import challenge
from encoder_lib.embedding import image_to_patches

CHAPTER = "embedding"
ASSIGNMENT = assignment_of(CHAPTER)
NAME = f"{CHAPTER}.ipynb"
POINTS = {exercise.name.partition(".")[2]: exercise.points for exercise in exercises(CHAPTER)}
ALL, HONEST = sum(POINTS.values()), "shapes"  # what a cheat has answered honestly
IN_THE_MIDDLE = "check_token_embedding"  # a fault's own cell stands behind this one


@dataclass(frozen=True)
class Where:
    """What the attackers know: the places of the secrets, told to them outright."""

    course: Path
    home: Path
    port: int
    abstract: str


@dataclass(frozen=True)
class Fault:
    """One submission.

    Args:
        name: the student's id.
        kind: honest, damage, runtime or cheat.
        says: what was done, in a few words for a table.
        make: writes the files into a folder.
        points: what is right for it.
        harms: whether it would harm the machine where nothing holds it.
        undetectable: right answers all the same, taken from elsewhere.
    """

    name: str
    kind: str
    says: str
    make: Callable[[Path, Where], None]
    points: float
    harms: bool = False
    undetectable: bool = False


FAULTS: list[Fault] = []


def released() -> NotebookNode:
    return nbformat.read(ROOT / "exercises" / ASSIGNMENT / NAME, as_version=4)


def solutions() -> dict[str, str]:
    return {name: without_marks(cell) for name, cell in answer_cells(CHAPTER).items()}


def full(**changed: str) -> NotebookNode:
    """All exercises right, but for those that are changed."""
    return fill_in(released(), solutions() | changed)


def lazy(**answers: str) -> NotebookNode:
    """The last exercise alone, and these answers."""
    return fill_in(released(), {HONEST: solutions()[HONEST], **answers})


def write(notebook: NotebookNode, folder: Path, name: str = NAME) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(nbformat.writes(notebook))


def cell(notebook: NotebookNode, name: str) -> NotebookNode:
    return next(each for each in notebook.cells if _name_of(each) == name)


def _name_of(each: NotebookNode) -> str:
    return each.metadata.get("nbgrader", {}).get("grade_id", "")


def behind(notebook: NotebookNode, name: str, *new: NotebookNode) -> NotebookNode:
    """Put cells behind the one of this name, or in front of all."""
    place = 1 + [_name_of(each) for each in notebook.cells].index(name) if name else 0
    notebook.cells[place:place] = new
    return notebook


def tests(notebook: NotebookNode) -> list[NotebookNode]:
    return [each for each in notebook.cells if is_grade(each) and not is_solution(each)]


def fault(kind: str, says: str, points: float | None = None, **flags):
    """Enter a function that makes a submission; its name is the student's."""

    def enter(make):
        right = {"cheat": POINTS[HONEST], "damage": ALL, "runtime": ALL, "honest": ALL}[kind]
        FAULTS.append(Fault(make.__name__, kind, says, make, right if points is None else points, **flags))
        return make

    return enter


def edited(
    kind: str, name: str, says: str, edit: Callable[[NotebookNode], None], points=None, base=full, **flags
) -> None:
    """Enter a submission that is a notebook with something edited."""

    def make(folder: Path, where: Where) -> None:
        notebook = base()
        edit(notebook)
        write(notebook, folder)

    make.__name__ = name
    fault(kind, says, points, **flags)(make)


def raw(name: str, says: str, content: Callable[[], bytes], points: float | None = None) -> None:
    """Enter a submission whose notebook is these bytes."""

    def make(folder: Path, where: Where) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / NAME).write_bytes(content())

    make.__name__ = name
    fault("damage", says, points)(make)


def coded(kind: str, name: str, says: str, source: str, points=None, place=IN_THE_MIDDLE, **flags) -> None:
    """Enter a submission with a cell of its own; COURSE, REPOSITORY, HOME, PORT and ABSTRACT in it are filled in."""

    def make(folder: Path, where: Where) -> None:
        text = (
            source.replace("ASSIGNMENT", ASSIGNMENT)
            .replace("COURSE", str(where.course))
            .replace("REPOSITORY", str(ROOT))
        )
        text = (
            text.replace("HOME", str(where.home)).replace("PORT", str(where.port)).replace("ABSTRACT", where.abstract)
        )
        notebook = lazy() if kind == "cheat" else full()
        write(behind(notebook, "imports" if kind == "cheat" else place, new_code_cell(text)), folder)

    make.__name__ = name
    fault(kind, says, points, **flags)(make)


# --- honest ----------------------------------------------------------------------------------------------------------

edited("honest", "honest_full", "everything right", lambda nb: None)
edited("honest", "honest_half", "two exercises right, the rest untouched", lambda nb: None, POINTS["one_hot_lookup"] + POINTS["shapes"],
       base=lambda: lazy(one_hot_lookup=solutions()["one_hot_lookup"]))  # fmt: skip
edited("honest", "honest_stub", "nothing written", lambda nb: None, 0, base=released)
coded("honest", "honest_warning", "right, with a warning on stderr", "import warnings; warnings.warn('careful')")
coded("honest", "honest_progress", "right, with a progress bar on stderr",
      "import sys\nfor i in range(200): print(f'\\r{i / 2:.0f} %', end='', file=sys.stderr)")  # fmt: skip
coded("honest", "honest_slow", "right, but slow", "import time; time.sleep(15)")
coded("honest", "honest_figures", "right, with thirty figures",
      "import matplotlib.pyplot as plt\nfor i in range(30):\n    plt.figure(); plt.plot([i, 1]); plt.show()")  # fmt: skip
coded("honest", "honest_prints", "right, and prints a lot", "for i in range(20_000): print('line', i)")

# --- damage ----------------------------------------------------------------------------------------------------------

raw("cut_off", "JSON that breaks off", lambda: nbformat.writes(full()).encode()[:4000], 0)
raw("not_json", "a text that is no JSON", lambda: b"My answers are on paper.", 0)
raw("empty_file", "an empty file", lambda: b"", 0)
raw(
    "no_cells",
    "a notebook without cells",
    lambda: b'{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}',
    0,
)
raw("a_list", "JSON that is no notebook", lambda: b"[1, 2, 3]", 0)
raw("deep_json", "JSON nested 200,000 deep", lambda: b"[" * 200_000, 0)
raw("zeros", "a file of zeros", lambda: b"\0" * 5000, 0)
raw("windows_ends", "Windows line ends", lambda: _with_ends(full()).replace(b"\n", b"\r\n"))
raw("byte_order_mark", "a byte order mark", lambda: b"\xef\xbb\xbf" + nbformat.writes(full()).encode())
raw("utf_16", "UTF-16", lambda: json.dumps(full(), ensure_ascii=False).encode("utf-16"))
raw("latin_1", "Latin-1", lambda: _latin(full()))
raw("version_3", "nbformat 3", lambda: json.dumps(_version_3(full())).encode())
raw("large_outputs", "50 MB of saved output", lambda: nbformat.writes(_with_outputs(full())).encode())


def _with_ends(notebook: NotebookNode) -> bytes:
    for each in notebook.cells:
        each.source = each.source.replace("\n", "\r\n")
    return nbformat.writes(notebook).encode()


def _latin(notebook: NotebookNode) -> bytes:
    cell(notebook, "shapes").source += "\n# d\u00e9j\u00e0 vu"
    text = json.dumps(notebook, ensure_ascii=False)
    return "".join(letter if ord(letter) < 256 else "?" for letter in text).encode("latin-1")


def _version_3(notebook: NotebookNode) -> dict:
    cells = []
    for each in notebook.cells:
        old = {"cell_type": each.cell_type, "metadata": each.metadata}
        cells.append(
            old
            | (
                {"input": each.source, "outputs": [], "language": "python"}
                if each.cell_type == "code"
                else {"source": each.source}
            )
        )
    return {
        "worksheets": [{"cells": cells, "metadata": {}}],
        "metadata": {"name": ""},
        "nbformat": 3,
        "nbformat_minor": 0,
    }


def _with_outputs(notebook: NotebookNode) -> NotebookNode:
    cell(notebook, "imports").outputs = [new_output("stream", text="x" * 50_000_000)]
    return notebook


def _lose_metadata(notebook: NotebookNode, **more) -> None:
    for number, each in enumerate(notebook.cells):
        each.metadata = NotebookNode(more)
        each.id = f"lost{number}"


def _platform(name: str, says: str, **metadata) -> None:
    def edit(notebook):
        _lose_metadata(notebook, **metadata)

    edited("damage", name, says, edit)


_platform(
    "colab", "saved by Colab: all ids and marks lost", id="aB3", outputId="x", colab={"base_uri": "https://localhost"}
)
_platform(
    "kaggle", "saved by Kaggle: all ids and marks lost", trusted=True, _uuid="8f2", execution={"iopub.status": "idle"}
)


def _add_metadata(notebook):
    for each in notebook.cells:
        each.metadata |= {"vscode": {"languageId": "python"}, "collapsed": True, "jupyter": {"source_hidden": True}}


edited("damage", "vs_code", "saved by VS Code and JupyterLab with metadata of their own", _add_metadata)


@fault("damage", "cell ids are missing")
def no_ids(folder, where):
    notebook = json.loads(nbformat.writes(full()))
    for each in notebook["cells"]:
        del each["id"]
    folder.mkdir(parents=True)
    (folder / NAME).write_text(json.dumps(notebook))


@fault("damage", "every cell has the same id")
def same_ids(folder, where):
    notebook = json.loads(nbformat.writes(full()))
    for each in notebook["cells"]:
        each["id"] = "one"
    folder.mkdir(parents=True)
    (folder / NAME).write_text(json.dumps(notebook))


def _remove(notebook, *names):
    notebook.cells = [each for each in notebook.cells if _name_of(each) not in names]


def _double(notebook, name):
    behind(notebook, name, deepcopy(cell(notebook, name)))


def _tests_first(notebook):
    notebook.cells = tests(notebook) + [each for each in notebook.cells if each not in tests(notebook)]


def _for_tests(change):
    def edit(notebook):
        for each in tests(notebook):
            change(each)

    return edit


edited("damage", "test_deleted", "a test cell deleted", lambda nb: _remove(nb, "check_patch_embedding"))
edited(
    "damage", "tests_deleted", "all test cells deleted", lambda nb: _remove(nb, *(f"check_{name}" for name in POINTS))
)
edited("damage", "test_doubled", "a test cell doubled", lambda nb: _double(nb, "check_patch_embedding"))
edited("damage", "tests_moved", "the test cells moved to the top", _tests_first)
edited(
    "damage", "tests_as_text", "the test cells turned into text", _for_tests(lambda c: c.update(cell_type="markdown"))
)
edited("damage", "flags_flipped", "the flags of the test cells flipped",
       _for_tests(lambda c: c.metadata.nbgrader.update(grade=False, locked=False, solution=True)))  # fmt: skip
edited(
    "damage",
    "marks_removed",
    "nbgrader's marks removed from the test cells",
    _for_tests(lambda c: c.metadata.pop("nbgrader")),
)
edited("damage", "tag_raises", "the tag raises-exception on every cell",
       lambda nb: [each.metadata.update(tags=["raises-exception", "remove-cell"]) for each in nb.cells])  # fmt: skip
edited("damage", "unknown_id", "a test cell with an unknown id",
       lambda nb: behind(nb, "check_shapes", new_code_cell("99.0", metadata={"nbgrader": {"grade_id": "bonus", "grade": True, "points": 99, "locked": True, "solution": False, "schema_version": 3}})))  # fmt: skip
edited(
    "damage",
    "wrong_kernel",
    "the kernel of another language",
    lambda nb: nb.metadata.update(kernelspec={"name": "julia-1.9", "display_name": "Julia", "language": "julia"}),
)
edited(
    "damage",
    "answer_deleted",
    "an answer cell deleted",
    lambda nb: _remove(nb, "one_hot_lookup"),
    ALL - POINTS["one_hot_lookup"],
)


@fault("damage", "an answer cell copied, and the work done in the copy")
def answer_copied(folder, where):
    notebook = full()
    copy = deepcopy(cell(notebook, "patch_embedding"))
    cell(notebook, "patch_embedding").source = cell(released(), "patch_embedding").source
    write(behind(notebook, "patch_embedding", copy), folder)


@fault("damage", "the file renamed")
def renamed(folder, where):
    write(full(), folder, "homework one (final).ipynb")


@fault("damage", "the file in a folder of its own")
def nested(folder, where):
    write(full(), folder, f"week 1/{NAME}")


@fault("damage", "no notebook at all", 0)
def missing(folder, where):
    folder.mkdir(parents=True)
    (folder / "readme.txt").write_text("Sorry.")


@fault("damage", "two copies, of which the named one counts")
def two_copies(folder, where):
    write(full(), folder)
    write(released(), folder, "embedding-Copy1.ipynb")


@fault("damage", "files named like torch and like the course's modules beside it")
def more_files(folder, where):
    write(full(), folder)
    for name in ("torch.py", "encoder_lib.py", "encoder_grader.py", "sitecustomize.py", "data.csv"):
        (folder / name).write_text("raise SystemExit('not the real one')")


@fault("damage", "pipes and folders that link to themselves beside it")
def pipes(folder, where):
    write(full(), folder)
    os.mkfifo(folder / "pipe.ipynb")
    (folder / "round").symlink_to(folder)


# --- at run time -----------------------------------------------------------------------------------------------------

RUNTIME = {
    "endless": ("an endless loop", "while True: pass"),
    "endless_stubborn": ("an endless loop that ignores interrupts", "while True:\n    try:\n        import time; time.sleep(9)\n    except BaseException:\n        pass"),
    "sys_exit": ("sys.exit", "import sys; sys.exit(1)"),
    "os_exit": ("os._exit", "import os; os._exit(0)"),
    "kill_itself": ("kills its own process", "import os; os.kill(os.getpid(), 9)"),
    "segfault": ("a segmentation fault", "import ctypes; ctypes.string_at(0)"),
    "endless_output": ("output without end", "while True: print('x' * 10_000)"),
    "long_line": ("one line of 20 MB", "print('x' * 20_000_001)"),
    "recursion": ("endless recursion", "def f(n): return f(n + 1)\nf(0)"),
    "asks": ("input()", "input('How many points? ')"),
    "closes_streams": ("closes its output", "import sys; sys.stdout.close(); sys.stderr.close()"),
    "changes_folder": ("changes its folder and removes it", "import os, tempfile\nd = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)"),
    "seeds": ("sets seeds", "import random, numpy, torch\nrandom.seed(0); numpy.random.seed(0); torch.manual_seed(0)"),
    "default_dtype": ("sets the default dtype", "torch.set_default_dtype(torch.float64)"),
    "default_device": ("sets the default device", "torch.set_default_device('meta')"),
    "threads_set": ("asks for 64 threads", "torch.set_num_threads(64)"),
    "no_grad": ("turns gradients off", "torch.set_grad_enabled(False)"),
    "inference": ("enters inference mode for good", "mode = torch.inference_mode(); mode.__enter__()"),
    "signals": ("ignores every signal", "import signal\nfor s in set(signal.Signals) - {signal.SIGKILL, signal.SIGSTOP}: signal.signal(s, signal.SIG_IGN)"),
    "interrupts": ("raises KeyboardInterrupt", "raise KeyboardInterrupt"),
    "magics": ("magics and shell commands", "%timeit -n1 -r1 1 + 1\n!echo hello"),
    "syntax": ("a cell with a syntax error", "def f(:"),
}  # fmt: skip
HARMING = {
    "memory_bomb": ("takes all memory", "hoard = []\nwhile True: hoard.append(bytearray(100_000_000))"),
    "fork_bomb": ("forks without end", "import os\nwhile True: os.fork()"),
    "thread_bomb": ("starts threads without end", "import threading, time\nwhile True: threading.Thread(target=time.sleep, args=(999,)).start()"),
    "daemon": ("leaves a process behind", "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        time.sleep(9999)\n    os._exit(0)"),
    "fills_disk": ("fills the disk", "n = 0\nwhile True:\n    n += 1\n    open(f'/tmp/{n}', 'wb').write(bytes(10_000_000))"),
    "kills_all": ("kills every process it can", "import os\nos.kill(-1, 9)"),
}  # fmt: skip
for _name, (_says, _source) in RUNTIME.items():
    coded("runtime", _name, _says, _source)
for _name, (_says, _source) in HARMING.items():
    coded("runtime", _name, _says, _source, harms=True)


def answering(name: str, says: str, body: str) -> None:
    """Enter a submission in which the first exercise's one_hot, on which its other functions stand, has this body."""

    def make(folder: Path, where: Where) -> None:
        text = solutions()["one_hot_lookup"] + f"\n\n\ndef one_hot(ids, vocab_size):\n    {body}"
        write(full(one_hot_lookup=text), folder)

    make.__name__ = name
    fault("runtime", says, ALL - POINTS["one_hot_lookup"])(make)


answering("endless_answer", "an answer that never returns", "while True: pass")
answering("deadly_answer", "an answer that ends the process", "import os; os._exit(1)")
answering("nan_answer", "an answer that gives NaN", "return torch.full((*ids.shape, vocab_size), torch.nan)")
answering(
    "in_place_answer",
    "an answer that changes its input",
    "ids += 1; return (ids[..., None] == torch.arange(vocab_size)).float()",
)


@fault("runtime", "answers that need the order of the cells")
def ordered(folder, where):
    notebook = behind(full(), "imports", new_code_cell("step = 1"))
    behind(notebook, "check_one_hot_lookup", new_code_cell("step += 1"))
    write(
        behind(
            notebook, "check_image_to_patches", new_code_cell("step += 1\nassert step == 3\nright = image_to_patches")
        ),
        folder,
    )


# --- cheating --------------------------------------------------------------------------------------------------------

FILES = "print(open('{}').read())"
TRICKS = {
    "always_equal": ("results that equal everything", "class Yes(torch.Tensor):\n    def __eq__(self, other): return torch.ones((), dtype=torch.bool)\n    def allclose(self, *a, **k): return True\nimage_to_patches = one_hot = lambda *a, **k: torch.zeros(1).as_subclass(Yes)"),
    "patched_allclose": ("torch.allclose and torch.equal patched", "torch.allclose = torch.equal = lambda *a, **k: True\ntorch.Tensor.allclose = torch.Tensor.equal = lambda *a, **k: True"),
    "patched_isclose": ("math.isclose patched", "import math; math.isclose = lambda *a, **k: True"),
    "patched_testing": ("torch.testing and numpy.testing patched", "import torch.testing, numpy.testing\ntorch.testing.assert_close = lambda *a, **k: None\nfor n in dir(numpy.testing):\n    if n.startswith('assert'): setattr(numpy.testing, n, lambda *a, **k: None)"),
    "own_check": ("a check of its own", "check = lambda name: {'one_hot_lookup': 4.0, 'token_embedding': 6.0, 'image_to_patches': 5.0, 'patch_embedding': 6.0}.get(name.split('.')[1], 4.0)"),
    "patched_check": ("check patched in its module", "import encoder_grader, encoder_grader.checking as c\nfull = lambda name, namespace=None: {'one_hot_lookup': 4.0, 'token_embedding': 6.0, 'image_to_patches': 5.0, 'patch_embedding': 6.0}.get(name.split('.')[1], 4.0)\nencoder_grader.check = c.check = check = full"),
    "patched_judge": ("the judge patched", "import encoder_grader.judge as j\nj.difference = lambda *a: None"),
    "patched_verdict": ("the verdict patched", "import encoder_grader.verdict as v\nv.Verdict.points = property(lambda self: self.maximum)"),
    "patched_show": ("print and display patched", "import builtins, IPython.display\nbuiltins.print = IPython.display.display = lambda *a, **k: None"),
    "strips_tests": ("an AST transformer that strips the test cells", "import ast\nclass Strip(ast.NodeTransformer):\n    def visit_Expr(self, node): return ast.Pass()\nget_ipython().ast_transformers.append(Strip())"),
    "strips_source": ("an input transformer that empties every cell", "get_ipython().input_transformers_post.append(lambda lines: [])"),
    "own_run_cell": ("run_cell replaced", "ip = get_ipython()\nclass R: success = True; error_in_exec = error_before_exec = result = None; execution_count = 1\nip.run_cell = lambda *a, **k: R()\ntype(ip).run_cell_async = None"),
    "no_tracebacks": ("tracebacks turned off, check broken", "get_ipython().showtraceback = lambda *a, **k: None\ndef check(name): raise ValueError"),
    "displayhook": ("points through the displayhook", "import sys\nold = sys.displayhook\ndef check(name): sys.displayhook(6.0 if 'embedding.' in name and 'embedding' in name[9:] else 4.0)"),
    "forged_files": ("forged verdict and answer files", "import os\nfor place in ('.', '/tmp', '/exchange', os.environ.get('EXCHANGE', '.')):\n    for name in ('verdict.json', 'recording.json', 'answers.safetensors', 'check-2'):\n        try: open(f'{place}/{name}', 'w').write('{\"points\": 25}')\n        except OSError as e: print(e)"),
    "forged_message": ("forged output on the kernel's own channel", "k = get_ipython().kernel\ndef check(name):\n    k.session.send(k.iopub_socket, 'execute_result', {'data': {'text/plain': '5.0'}, 'metadata': {}, 'execution_count': 1}, parent=k.get_parent())"),
    "above_maximum": ("a result above the maximum", "def check(name): return 1000.0"),
    "text_result": ("a result that is text", "class Points(float):\n    def __repr__(self): return 'all of them'\ndef check(name): return Points(1)"),
    "reads_history": ("reads what the cells before held", "print(In, Out, [c for c in get_ipython().history_manager.input_hist_raw])"),
    "reads_stack": ("reads the stack of the check for the right answer", "import inspect\ndef image_to_patches(images, patch_size):\n    for f in inspect.stack():\n        for v in f.frame.f_locals.values():\n            e = getattr(v, 'exercise', None) or v\n            r = getattr(e, 'reference', None)\n            if isinstance(r, dict) and 'image_to_patches' in r: return r['image_to_patches'](images, patch_size)"),
    "searches_memory": ("searches the memory for the reference", "import gc\ndef image_to_patches(images, patch_size):\n    for f in gc.get_objects():\n        if getattr(f, '__name__', '') == 'image_to_patches' and f.__module__ == 'encoder_lib.embedding': return f(images, patch_size)"),
    "patched_collect": ("collect patched, to say that everything went well", "import encoder_grader.collect as c\nold = c.collect\ndef forged(plan, namespace, *a):\n    r = old(plan, namespace, *a)\n    for x in r.records: x['status'] = 'ok'; x.setdefault('value', {'kind': 'NoneType', 'value': None})\n    return r\nc.collect = forged\ntry:\n    import encoder_grader.answering as s; s.collect = forged\nexcept ImportError: pass"),
    "answers_itself": ("answers the plan with its own inputs", "import encoder_grader.collect as c\nclass R(c._Runner):\n    def do_call(self, step): return next(iter(self.plan.tensors.values())).clone()\nc._Runner = R"),
    "no_answer": ("refuses to answer the plan", "import sys\nsys.modules['encoder_grader.answering'] = sys.modules['encoder_grader.wire'] = None"),
    "endless_answering": ("floods the grader instead of an answer", "try:\n    import encoder_grader.answering as s, socket, struct\n    def answer(path):\n        with socket.socket(socket.AF_UNIX) as c:\n            c.connect(path)\n            while True: c.sendall(struct.pack('!II', 8_000_000, 90_000_000) + bytes(98_000_000))\n    s.answer = answer\nexcept ImportError: pass"),
    "imports_reference": ("imports this chapter's reference", "from encoder_lib.embedding import *\nimport encoder_lib.embedding as e\none_hot, lookup_by_product = e.one_hot, e.lookup_by_product"),
    "finds_reference": ("looks for the reference on the disk", "import glob, sys\nfor place in [*sys.path, 'COURSE', 'REPOSITORY', '/root', '/home', '/']:\n    for depth in ('', '*/', '*/*/', '*/*/*/'):\n        for file in glob.glob(f'{place}/{depth}encoder_lib/embedding.py') + glob.glob(f'{place}/{depth}solutions/*/embedding.ipynb'): exec(open(file).read(), globals())"),
    "reads_gradebook": ("reads the gradebook", "import sqlite3\nprint(list(sqlite3.connect('COURSE/gradebook.db').execute('select * from student')))"),
    "writes_gradebook": ("gives everybody full marks in the gradebook", "import sqlite3\ndb = sqlite3.connect('COURSE/gradebook.db')\ndb.execute('update grade set manual_score = 99, auto_score = 99'); db.commit()"),
    "reads_solutions": ("reads the solutions", "import glob\nfor f in glob.glob('COURSE/solutions/**', recursive=True):\n    try: print(f, open(f).read()[-3000:])\n    except OSError as e: print(e)"),
    "reads_others": ("reads other submissions", "import glob\nfor f in glob.glob('COURSE/submitted/*/*/*') + glob.glob('COURSE/staged/*/*/*') + glob.glob('COURSE/autograded/*/*/*'):\n    if 'honest' in f: print(f, open(f).read()[-3000:])"),
    "reads_secret": ("reads the secret of the grader", "for name in ('.grading_secret', '.ledger.json', 'nbgrader_config.py'): print(open('COURSE/' + name).read())"),
    "reads_environment": ("reads the environment of the grader", "import os, glob\nprint(dict(os.environ))\nfor f in glob.glob('/proc/*/environ'):\n    try: print(open(f, errors='replace').read())\n    except OSError: pass"),
    "reads_processes": ("reads the memory and files of other processes", "import glob, os\nfor f in glob.glob('/proc/*/cwd/canary*') + glob.glob('/proc/*/root' + 'HOME' + '/*') + glob.glob('/proc/*/fd/*'):\n    try: print(f, os.readlink(f)) if 'fd' in f else print(f, open(f).read())\n    except OSError: pass"),
    "reads_home": ("reads the home folder", "import glob, os\nfor f in glob.glob('HOME/.*') + glob.glob('HOME/*') + glob.glob(os.path.expanduser('~/.*')):\n    try: print(f, open(f).read())\n    except OSError as e: print(e)"),
    "network": ("asks a server on this machine", "import urllib.request\nprint(urllib.request.urlopen('http://127.0.0.1:PORT/canary', timeout=5).read())"),
    "abstract_socket": ("asks a server on an abstract socket", "import socket\ns = socket.socket(socket.AF_UNIX); s.settimeout(5); s.connect('\\0ABSTRACT'); print(s.recv(999))"),
    "name_lookup": ("asks a name server", "import socket; print(socket.getaddrinfo('example.org', 80))"),
    "built_in": ("wraps a built-in that may not be called", "import torch.nn.functional as F"),
    "becomes_root": ("tries to become root", "import os\nfor f in (lambda: os.setuid(0), lambda: os.setresuid(0, 0, 0), lambda: os.chroot('/'), lambda: os.unshare(os.CLONE_NEWUSER)):\n    try: f()\n    except Exception as e: print(e)\nprint(os.system('mount -t tmpfs none /mnt; su -c id; sudo id'))"),
}  # fmt: skip
OUTWARD = {
    "debugger": ("attaches to the process that started it", "import os, ctypes\nlibc = ctypes.CDLL(None)\nprint(libc.ptrace(16, os.getppid(), 0, 0))\nprint(open(f'/proc/{os.getppid()}/maps').read())"),
    "leaves_a_module": ("leaves a module behind for the next submission", "import site, sys, os\nbad = 'import builtins; builtins.POISONED = 1'\nfor place in [*sys.path, *site.getsitepackages(), 'COURSE', '/tmp', os.path.expanduser('~'), '/course', '/exchange']:\n    for name in ('sitecustomize.py', 'usercustomize.py', 'encoder_poison.pth', 'torch_poison.py'):\n        try: open(os.path.join(place, name), 'w').write(bad)\n        except OSError: pass"),
    "leaves_profiles": ("leaves start-up files of IPython behind", "import os\nd = os.path.expanduser('~/.ipython/profile_default/startup')\nos.makedirs(d, exist_ok=True); open(d + '/00.py', 'w').write('POISONED = 1')"),
}  # fmt: skip
# These keep their own notebook from answering, and so lose what they had answered honestly.
SELF_INFLICTED = dict.fromkeys(("strips_tests", "strips_source", "own_run_cell", "no_answer", "endless_answering"), 0.0)
SELF_INFLICTED["answers_itself"] = 2.0  # two variables need no call
for _name, (_says, _source) in TRICKS.items():
    coded("cheat", _name, _says, _source, SELF_INFLICTED.get(_name))
for _name, (_says, _source) in OUTWARD.items():
    coded("cheat", _name, _says, _source, harms=True)

edited(
    "cheat",
    "skip_execution",
    "the tag skip-execution on every test cell",
    _for_tests(lambda c: c.metadata.update(tags=["skip-execution"])),
    base=lazy,
)
edited(
    "cheat",
    "own_tests",
    "the test cells replaced by their points",
    _for_tests(lambda c: c.update(source=repr(float(c.metadata.nbgrader.points)))),
    base=lazy,
)
edited(
    "cheat",
    "more_points",
    "a thousand points for each test cell",
    _for_tests(lambda c: c.metadata.nbgrader.update(points=1000)),
    base=lazy,
)
edited("cheat", "saved_results", "results saved into the test cells",
       _for_tests(lambda c: c.update(outputs=[new_output("execute_result", data={"text/plain": repr(float(c.metadata.nbgrader.points))})])), base=lazy)  # fmt: skip


@fault("cheat", "a built-in renamed, in a helper function")
def built_in_renamed(folder, where):
    answer = solutions()["one_hot_lookup"]
    text = "from torch.nn.functional import one_hot as other\ndef one_hot(ids, vocab_size):\n    return other(ids, vocab_size).float()\n"
    text += "def lookup_by_product(ids, table):\n    return torch.nn.functional.embedding(ids, table)\n"
    text += "def table_gradient(ids, upstream, vocab_size):\n    table = torch.zeros(vocab_size, upstream.shape[-1], requires_grad=True)\n"
    text += "    torch.nn.functional.embedding(ids, table).backward(upstream)\n    return table.grad\n"
    assert "table_gradient" in answer, "the exercise has changed its names"
    write(lazy(one_hot_lookup=text), folder)


@fault("cheat", "the right results for the numbers of the visible check, by heart")
def by_heart(folder, where):
    exercise = next(each for each in exercises(CHAPTER) if each.name.endswith("image_to_patches"))
    plan = challenge(exercise, LOCAL_SEED)
    pairs = []
    for step in plan.steps:
        if step["do"] == "call":
            key = plan.steps[step["args"]["list"][0]["ref"]]["key"]
            size = step["args"]["list"][1]["const"]
            try:
                pairs.append((plan.tensors[key].tolist(), size, image_to_patches(plan.tensors[key], size).tolist()))
            except (ValueError, RuntimeError):
                continue
    assert pairs and all(torch.tensor(images).dim() == 4 for images, _, _ in pairs)
    text = f"""KNOWN = {pairs!r}
def image_to_patches(images, patch_size):
    for known, size, patches in KNOWN:
        if size == patch_size and torch.tensor(known).shape == images.shape and torch.allclose(torch.tensor(known), images):
            return torch.tensor(patches)
    raise ValueError"""
    write(lazy(image_to_patches=text), folder)


@fault("cheat", "a link in place of the notebook, to the solution", 0)
def link_to_solution(folder, where):
    folder.mkdir(parents=True)
    (folder / NAME).symlink_to(where.course / "solutions" / ASSIGNMENT / NAME)


@fault("cheat", "a hard link in place of the notebook, to a file of the instructor's", 0)
def hard_link(folder, where):
    folder.mkdir(parents=True)
    write(full(), where.course / "private")
    os.link(where.course / "private" / NAME, folder / NAME)


@fault("cheat", "links beside the notebook, to the gradebook and the home folder")
def links_beside(folder, where):
    write(lazy(), folder)
    (folder / "data.csv").symlink_to(where.course / "gradebook.db")
    (folder / "home").symlink_to(where.home)


@fault("cheat", "a forged time stamp")
def forged_time(folder, where):
    write(lazy(), folder)
    (folder / "timestamp.txt").write_text("2001-01-01 00:00:00 UTC")


SCRIPT = "<script>window.stolen = 1</script><img src=x onerror='window.stolen = 1'>"


@fault("cheat", "scripts in text, in saved output and in an error's message")
def scripts(folder, where):
    notebook = behind(lazy(), "introduction", new_markdown_cell(SCRIPT + "\n\n[a](javascript:window.stolen=1)"))
    code = f"from IPython.display import HTML, SVG, Javascript, Markdown, display\nfor k in (HTML, Javascript, Markdown): display(k({SCRIPT!r}))"
    behind(notebook, "imports", new_code_cell(code))
    cell(
        notebook, "image_to_patches"
    ).source = f"def image_to_patches(images, patch_size): raise ValueError({SCRIPT!r})"
    write(notebook, folder)


@fault("cheat", "the reference, copied into the notebook", ALL, undetectable=True)
def copied_reference(folder, where):
    packed = base64.b64encode("\n".join(solutions().values()).encode()).decode()
    answers = dict.fromkeys(POINTS, f"import base64\nexec(base64.b64decode({packed!r}).decode())")
    write(full(**answers), folder)
