"""Kinds of damage: honest work keeps what it says, nothing else comes in, and a sentence tells."""

import json
import os
import socket
from copy import deepcopy

import nbformat
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_raw_cell
from nbgrader.preprocessors import ClearSolutions
from nbgrader.utils import compute_checksum, is_solution

from encoder_grader import staging
from encoder_grader.staging import report_cell, take_in
from tests.grading.conftest import counting_notebook

FILE = "counting.ipynb"
ANSWERS = {"add": "def add(a, b):\n    return a + b", "double": "def double(a):\n    return 2 * a", "why": "So it is."}
NOTHING = "There was nothing to grade, so this notebook has 0 points."


def release():
    notebook, _ = ClearSolutions().preprocess(counting_notebook(), {})
    for cell in notebook.cells:
        cell.metadata.nbgrader.checksum = compute_checksum(cell)
    return notebook


RELEASED = release()


def answered(answers=ANSWERS):
    notebook = deepcopy(RELEASED)
    for cell in notebook.cells:
        if is_solution(cell):
            cell.source = answers.get(cell.id, cell.source)
    return notebook


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "ada" / "1_counting"
    folder.mkdir(parents=True)
    return folder


def stage(folder, notebook=None, name=FILE):
    """What staging makes of a notebook: its own cells as {id: source}, and the sentences."""
    if isinstance(notebook, NotebookNode):
        notebook = nbformat.writes(notebook)
    if isinstance(notebook, dict | list):
        notebook = json.dumps(notebook)
    if notebook is not None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(notebook if isinstance(notebook, bytes) else notebook.encode())
    intake = take_in(folder, FILE, RELEASED)
    check(intake.notebook)
    return {cell.id: cell.source for cell in intake.notebook.cells}, intake.sentences


def check(notebook):
    """It is valid, and has exactly the release's cells: but for the answers, and plain cells of the student's."""
    nbformat.validate(notebook)
    kept = [cell for cell in notebook.cells if "nbgrader" in cell.metadata]
    as_released = deepcopy(kept)
    for cell, released in zip(as_released, RELEASED.cells, strict=True):
        cell.source = released.source if is_solution(released) else cell.source
    assert as_released == RELEASED.cells
    assert notebook.metadata == RELEASED.metadata
    for cell in notebook.cells:
        assert cell in kept or (cell.metadata == {} and "attachments" not in cell and not cell.get("outputs"))


def answers_of(cells):
    return {name: cells[name] for name in ANSWERS}


def raw(notebook=None):
    return json.loads(nbformat.writes(notebook or answered()))


# --- an honest notebook, in whatever form it comes


def each_cell(change):
    notebook = raw()
    for cell in notebook["cells"]:
        change(cell)
    return notebook


def in_version_3(notebook):
    cells = deepcopy(notebook["cells"])
    for cell in cells:
        del cell["id"]
        if cell["cell_type"] == "code":
            cell["input"] = cell.pop("source")
    return {"nbformat": 3, "nbformat_minor": 0, "metadata": {"name": ""}, "worksheets": [{"cells": cells}]}


def with_saved_output(notebook):
    notebook["cells"][1]["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["0.25, 0.5,\n"] * 300_000}]
    return notebook


FORMS = {
    "as it is": raw(),
    "no cell ids": each_cell(lambda cell: cell.pop("id")),
    "the same cell id everywhere": each_cell(lambda cell: cell.update(id="x")),
    "metadata lost": each_cell(lambda cell: cell.update(metadata={"id": "abc", "colab": {}})),
    "metadata and cell ids lost": each_cell(lambda cell: (cell.pop("metadata"), cell.pop("id"))),
    "version 3": in_version_3(raw()),
    "another kernel": {**raw(), "metadata": {"kernelspec": {"name": "xeus", "display_name": "x", "language": "R"}}},
    "saved output": with_saved_output(raw()),
    "strings for lists": each_cell(lambda cell: cell.update(source="".join(cell["source"]))),
    "tags": each_cell(lambda cell: cell["metadata"].update(tags=["skip-execution", "remove-cell"])),
    "flags flipped": each_cell(lambda cell: cell["metadata"]["nbgrader"].update(locked=False, grade=False, points=99)),
    "every cell turned into Markdown": each_cell(lambda cell: cell.update(cell_type="markdown")),
    "cells that are none": {**raw(), "cells": [None, 3, "x", [], {}, *raw()["cells"], {"cell_type": 4, "source": {}}]},
    "not a number": json.dumps(raw()).replace('"nbformat_minor": 5', '"nbformat_minor": NaN, "x": -Infinity'),
    "byte order mark": "\ufeff" + json.dumps(raw()),
    "UTF-16": json.dumps(raw()).encode("utf-16"),
    "UTF-16 without a mark": json.dumps(raw()).encode("utf-16-le"),
    "Windows line ends": json.dumps(raw(), indent=1).replace("\n", "\r\n").replace("\\n", "\\r\\n"),
    "old Mac line ends": json.dumps(raw()).replace("\\n", "\\r"),
    "a null byte in a cell": json.dumps(raw()).replace("return", "\\u0000return"),
    "two keys alike": json.dumps(raw()).replace('{"cell_type"', '{"source": "1", "cell_type"'),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_honest_work_keeps_its_answers_in_whatever_form_it_comes(folder, form):
    cells, sentences = stage(folder, FORMS[form])
    assert answers_of(cells) == ANSWERS
    assert set(cells) == {cell.id for cell in RELEASED.cells}, cells
    assert [sentence for sentence in sentences if "was changed; the released one was run" not in sentence] == []


def test_a_notebook_in_latin_1_is_read(folder):
    answers = {**ANSWERS, "why": "Weil es so schön ist."}
    cells, sentences = stage(folder, json.dumps(raw(answered(answers)), ensure_ascii=False).encode("latin-1"))
    assert (answers_of(cells), sentences) == (answers, [])


def test_a_lone_surrogate_and_a_missing_half_character_do_no_harm(folder):
    cells, sentences = stage(folder, json.dumps(raw()).replace("So it is.", "So \\ud800 it"))
    assert (cells["why"], cells["add"], sentences) == ("So ? it", ANSWERS["add"], [])


# --- what is no notebook


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b" \n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\0\0\0\0", "is empty"),
        (json.dumps(raw())[:200], "is not a notebook: its JSON breaks off at character 193 of 200"),
        (json.dumps(raw()) + "}", f"its JSON breaks off at character {len(json.dumps(raw()))}"),
        ("I did my homework", "its JSON breaks off at character 0 of 17"),
        (b"\x89PNG\r\n\x1a\n\0\0", "its JSON breaks off at character 0"),
        ("[" * 100_000, "its JSON cannot be read"),
        ('{"cells": ' + "9" * 5000 + "}", "its JSON cannot be read"),
        ("[]", "is not a notebook"),
        ("null", "is not a notebook"),
        ("{}", "has no cells"),
        ('{"cells": []}', "has no cells"),
        ('{"cells": {"source": ""}}', "has no cells"),
        ('{"worksheets": [{"cells": []}]}', "has no cells"),
        ("<<<<<<< mine\n" + json.dumps(raw()), "its JSON breaks off at character 0"),
    ],
)
def test_what_is_no_notebook_is_said_and_gets_the_untouched_one(folder, content, says):
    cells, sentences = stage(folder, content)
    assert cells == {cell.id: cell.source for cell in RELEASED.cells}
    assert sentences[0].startswith(f"{FILE} ") and says in sentences[0] and sentences[1:] == [NOTHING]


@pytest.mark.parametrize(
    ("limit", "value", "says"),
    [
        ("LARGEST_FILE", 1000, "is larger than"),
        ("MOST_COMMAS", 10, "has too much saved in it"),
        ("MOST_BRACKETS", 10, "has too much saved in it"),
    ],
)
def test_a_notebook_too_large_to_be_read_is_not_read(folder, monkeypatch, limit, value, says):
    monkeypatch.setattr(staging, limit, value)
    cells, sentences = stage(folder, raw())
    assert answers_of(cells) != ANSWERS and says in sentences[0]


def test_a_cell_too_long_to_be_read_is_left_out_and_said(folder, monkeypatch):
    monkeypatch.setattr(staging, "LARGEST_CELL", 300)
    cells, sentences = stage(folder, answered({**ANSWERS, "add": "#" * 301}))
    assert "add" in cells and "#" * 301 not in cells.values() and cells["double"] == ANSWERS["double"]
    assert f"{FILE} has 1 cells that are too long to be read (300 characters); they were left out." in sentences


def test_of_very_many_cells_the_first_are_read_and_it_is_said(folder, monkeypatch):
    monkeypatch.setattr(staging, "MOST_CELLS", 8)
    notebook = answered()
    notebook.cells += [new_code_cell(f"x = {number}") for number in range(5)]
    cells, sentences = stage(folder, notebook)
    assert answers_of(cells) == ANSWERS and len(cells) == 8
    assert sentences == [f"{FILE} has 11 cells, of which the first 8 were read."]


# --- files, names and places


def test_a_renamed_or_nested_notebook_is_found(folder):
    cells, sentences = stage(folder, answered(), "homework/final/Counting (1).ipynb")
    assert answers_of(cells) == ANSWERS
    assert sentences == [f"{FILE} is missing; homework/final/Counting (1).ipynb was graded in its place."]


def test_of_two_copies_the_right_name_counts_unless_it_is_untouched(folder):
    stage(folder, answered({**ANSWERS, "add": "def add(a, b):\n    return b"}), "counting-Copy1.ipynb")
    cells, sentences = stage(folder, answered())
    assert answers_of(cells) == ANSWERS
    assert sentences == ["Not looked at: counting-Copy1.ipynb. Only the notebook is graded."]
    cells, sentences = stage(folder, RELEASED)
    assert cells["add"].endswith("return b")
    assert sentences[0] == f"{FILE} has no answers; counting-Copy1.ipynb was graded in its place."


def test_another_notebook_is_not_taken_for_this_one(folder):
    other = nbformat.v4.new_notebook(cells=[new_code_cell("def other(): return 1")])
    cells, sentences = stage(folder, other, "other.ipynb")
    assert set(cells) == {cell.id for cell in RELEASED.cells}
    assert sentences == [f"{FILE} is missing.", "Not looked at: other.ipynb. Only the notebook is graded.", NOTHING]


def test_the_other_notebooks_of_an_assignment_are_no_business_of_this_one(folder):
    stage(folder, answered())
    stage(folder, answered(), "second.ipynb")
    assert take_in(folder, FILE, RELEASED, ("second.ipynb",)).sentences == []


def test_other_files_stay_behind_and_are_named_on_one_line(folder):
    for name in ("torch.py", "encoder_lib.py", "a\nb\x1b[31m.txt", "c", "d", "e", "timestamp.txt"):
        (folder / name).write_text("print(1)")
    _, sentences = stage(folder, answered())
    assert sentences == [
        "Not looked at: a?b?[31m.txt, c, d, e, encoder_lib.py and 1 more. Only the notebook is graded."
    ]


def test_links_pipes_and_devices_are_not_followed_and_never_wait(folder, tmp_path):
    secret = tmp_path / "secret.ipynb"
    nbformat.write(answered(), secret)
    place = folder / FILE
    place.symlink_to(secret)
    assert stage(folder)[1] == [f"{FILE} is a link to another file.", NOTHING]
    place.unlink()
    os.link(secret, place)
    assert stage(folder)[1] == [f"{FILE} is a hard link to another file: put a copy in its place.", NOTHING]
    place.unlink()
    os.mkfifo(place)
    assert stage(folder)[1] == [f"{FILE} is not a plain file.", NOTHING]
    place.unlink()
    with socket.socket(socket.AF_UNIX) as listener:
        os.chdir(folder)
        listener.bind(FILE)
        assert stage(folder)[1] == [f"{FILE} is not a plain file.", NOTHING]
    place.unlink()
    place.symlink_to(place)
    assert stage(folder)[1] == [f"{FILE} is a link to another file.", NOTHING]
    place.unlink()
    place.mkdir()
    assert stage(folder)[1] == [f"{FILE} is missing.", NOTHING]
    (folder / "away").symlink_to(tmp_path)
    assert f"{FILE} is missing." in stage(folder)[1]


def test_a_submission_that_is_a_link_or_a_file_is_not_followed(folder, tmp_path):
    stage(folder, answered())
    linked = tmp_path / "ben" / "1_counting"
    linked.parent.mkdir()
    linked.symlink_to(folder)
    assert stage(linked)[1] == ["The submission is a link to another place, and links are not followed.", NOTHING]
    linked.unlink()
    linked.parent.rmdir()
    linked.parent.symlink_to(folder.parent)
    assert stage(linked)[1] == ["The submission is a link to another place, and links are not followed.", NOTHING]
    linked.parent.unlink()
    linked.parent.mkdir()
    linked.write_text("{}")
    assert stage(linked)[1] == ["The submission is not a folder.", NOTHING]


def test_the_notebook_is_found_among_ever_so_many_files_and_deep_folders_are_left(folder, monkeypatch):
    monkeypatch.setattr(staging, "MOST_FILES", 10)
    for number in range(30):
        (folder / f"a{number}").write_text("")
    assert answers_of(stage(folder, answered())[0]) == ANSWERS
    (folder / FILE).rename(folder / "z.ipynb")
    for file in folder.glob("a*"):
        file.unlink()
    (folder / "1/2/3/4").mkdir(parents=True)
    (folder / "z.ipynb").rename(folder / "1/2/3/4/z.ipynb")
    assert stage(folder)[1] == [f"{FILE} is missing.", NOTHING]


# --- cells


def at(notebook, name):
    return [cell.id for cell in notebook.cells].index(name)


def test_a_test_cell_deleted_doubled_moved_or_changed_is_the_released_one(folder):
    for change, says in (
        (lambda cells, i: cells.pop(i), "was missing; it came back."),
        (lambda cells, i: cells.insert(0, NotebookNode(cells[i], id="copy")), "was there 2 times; it was run once."),
        (lambda cells, i: cells.append(cells.pop(i)), None),
        (lambda cells, i: cells[i].update(source="3.0"), "was changed; the released one was run."),
        (lambda cells, i: cells.__setitem__(i, new_markdown_cell(cells[i].source, metadata=cells[i].metadata)),
         "was changed; the released one was run."),
        (lambda cells, i: cells[i].metadata.nbgrader.update(grade_id="check_nothing"), None),
        (lambda cells, i: cells[i].metadata.pop("nbgrader"), None),
    ):  # fmt: skip
        notebook = answered()
        change(notebook.cells, at(notebook, "check_add"))
        cells, sentences = stage(folder, notebook)
        assert answers_of(cells) == ANSWERS
        assert sentences == ([f"The test cell check_add {says}"] if says else []), says
        assert len(cells) == len(RELEASED.cells)


def test_a_deleted_answer_comes_back_as_the_stub(folder):
    notebook = answered()
    del notebook.cells[at(notebook, "add")]
    cells, sentences = stage(folder, notebook)
    assert "NotImplementedError" in cells["add"] and cells["double"] == ANSWERS["double"]
    assert sentences == ["The answer cell add is missing: it counts as not answered."]


def test_an_answer_written_into_a_cell_of_ones_own_counts(folder):
    notebook = answered()
    notebook.cells[at(notebook, "add")] = new_code_cell(
        "import math\n%time 1\ndef add(a, b):\n    return math.fsum([a, b])"
    )
    cells, sentences = stage(folder, notebook)
    assert "fsum" in cells["add"] and sentences == []


def double(folder, *sources):
    """Staged, with `add` written as often as there are sources; None stands for the test cell."""
    notebook = answered()
    place = at(notebook, "add")
    original, test = notebook.cells[place], notebook.cells[place + 1]
    cells = []
    for number, source in enumerate(sources):
        cells.append(deepcopy(test if source is None else original))
        if source is not None:
            cells[-1].source, cells[-1].id = source, f"copy{number}"
    notebook.cells[place : place + 2] = cells
    staged, sentences = stage(folder, notebook)
    assert sentences == ["The answer cell add is there 2 times: the last one above its test cell counts."]
    order = list(staged)
    return staged["add"], [staged[name] for name in order[1 : order.index("add")]], [
        staged[name] for name in order[order.index("check_add") + 1 : order.index("double")]
    ]  # fmt: skip


def test_of_an_answer_written_twice_the_last_one_above_its_test_counts_and_all_are_run(folder):
    stub = RELEASED.cells[1].source
    one, two = "def add(a, b): return 1", "def add(a, b): return 2"
    assert double(folder, one, two, None) == (two, [one], [])
    assert double(folder, one, None, two) == (one, [], [two])
    assert double(folder, stub, two, None) == (two, [], [])
    assert double(folder, one, stub, None) == (one, [], [])
    assert double(folder, stub, None, two) == (two, [], [])
    assert double(folder, one, None, stub) == (one, [], [])


def test_cells_of_ones_own_stay_where_they_are_as_plain_cells(folder):
    notebook = answered()
    marked = {
        "nbgrader": {"grade_id": "mine", "grade": True, "points": 9, "schema_version": 3},
        "tags": ["remove-cell"],
    }
    own = new_code_cell("helper = 1", metadata=marked, outputs=[nbformat.v4.new_output("stream", text="x")])
    note = new_markdown_cell("a note", attachments={"a.png": {"image/png": "AAAA"}})
    notebook.cells[2:2] = [own, note, new_raw_cell("raw"), new_code_cell("  \n")]
    notebook.cells.insert(0, new_code_cell("first = 1"))
    cells, sentences = stage(folder, notebook)
    assert list(cells.values())[:1] == ["first = 1"] and sentences == []
    order = list(cells)
    assert [cells[name] for name in order[order.index("add") + 1 : order.index("check_add")]] == [
        "helper = 1",
        "a note",
    ]


def test_what_stands_behind_a_moved_cell_is_run_before_what_it_stood_above(folder):
    notebook = answered()
    moved = notebook.cells.pop(at(notebook, "check_double"))
    notebook.cells[0:0] = [moved, new_code_cell("helper = 1")]
    cells, _ = stage(folder, notebook)
    assert next(iter(cells.values())) == "helper = 1"


def test_a_changed_cell_of_imports_is_run_as_released_and_then_as_changed(folder):
    released = deepcopy(RELEASED)
    imports = new_code_cell("import torch", id="imports")
    imports.metadata.nbgrader = {**released.cells[0].metadata.nbgrader, "grade_id": "imports"}
    released.cells.insert(1, imports)
    notebook = deepcopy(released)
    notebook.cells[1].source = "import torch, math"
    nbformat.write(notebook, folder / FILE)
    intake = take_in(folder, FILE, released)
    assert [cell.source for cell in intake.notebook.cells[1:3]] == ["import torch", "import torch, math"]
    assert intake.sentences == ["The cell imports was changed; the released one was run, then yours."]


def test_the_report_is_plain_text(folder):
    cell = report_cell(["<script>1</script> *a* [b](javascript:c) `d` $e$ \\f_g"], RELEASED)
    assert (
        cell.source.endswith(r"- \<script\>1\<\/script\> \*a\* \[b\]\(javascript\:c\) \`d\` \$e\$ \\f\_g")
        and cell.metadata == {}
    )


# --- fuzz: never an exception, always a valid notebook with exactly the release's cells

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
names = st.sampled_from([cell.id for cell in RELEASED.cells]) | anything
sources = st.sampled_from([*ANSWERS.values(), *(cell.source for cell in RELEASED.cells)]) | anything
nbgrader_metadata = st.fixed_dictionaries({}, optional={"grade_id": names, "points": anything, "solution": anything})
cell_like = st.fixed_dictionaries(
    {},
    optional={
        "cell_type": st.sampled_from(["code", "markdown", "raw", "heading"]) | anything,
        "id": names,
        "source": sources,
        "input": sources,
        "outputs": anything,
        "attachments": anything,
        "metadata": st.fixed_dictionaries({}, optional={"nbgrader": nbgrader_metadata | anything, "tags": anything})
        | anything,
    },
)
cells_like = st.lists(cell_like | st.sampled_from(raw()["cells"]) | anything, max_size=12)
notebook_like = st.fixed_dictionaries(
    {},
    optional={
        "cells": cells_like | anything,
        "worksheets": st.lists(st.fixed_dictionaries({"cells": cells_like | anything}) | anything, max_size=2),
        "metadata": anything,
        "nbformat": anything,
    },
)
fuzz = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@fuzz
@given(notebook_like | anything)
@example({"cells": [{"source": ["a", 3, None], "metadata": {"nbgrader": {"grade_id": ["add"]}}}]})
def test_any_json_gives_a_clean_notebook(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("ada") / "1_counting"
    folder.mkdir()
    stage(folder, json.dumps(content))


@fuzz
@given(st.binary(max_size=300), st.integers(0, len(json.dumps(raw()))), st.integers(0, 40))
def test_any_bytes_give_a_clean_notebook(tmp_path_factory, inserted, place, removed):
    folder = tmp_path_factory.mktemp("ada") / "1_counting"
    folder.mkdir()
    stage(folder, inserted)
    whole = json.dumps(raw()).encode()
    stage(folder, whole[:place] + inserted + whole[place + removed :])
