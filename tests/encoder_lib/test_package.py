"""The package as a whole: its imports and its manners."""

import ast
import subprocess
import sys
from pathlib import Path

import jaxtyping
import pytest
import torch

import encoder_lib
from encoder_lib import embedding

FOLDER = Path(encoder_lib.__file__).parent


def run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)


def imported_modules(path: Path) -> set[str]:
    """Which modules of encoder_lib a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} uses a relative import"
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        else:
            continue
        found |= {name.split(".")[1] for name in names if name.startswith("encoder_lib.")}
    return found & {file.stem for file in FOLDER.glob("*.py")}


@pytest.mark.parametrize("chapter", encoder_lib.CHAPTERS)
def test_a_chapter_imports_only_earlier_chapters(chapter):
    earlier = encoder_lib.CHAPTERS[: encoder_lib.CHAPTERS.index(chapter)]
    assert imported_modules(FOLDER / f"{chapter}.py") <= {"_checks", "vocabulary", *earlier}


def test_what_comes_before_the_chapters_imports_none_of_them():
    assert imported_modules(FOLDER / "_checks.py") == set()
    assert imported_modules(FOLDER / "vocabulary.py") == {"_checks"}
    assert imported_modules(FOLDER / "running_example.py") == {"vocabulary"}


def test_every_module_is_a_chapter_or_named_here():
    modules = {file.stem for file in FOLDER.glob("*.py")}
    assert modules == {"__init__", "_checks", "vocabulary", "running_example", *encoder_lib.CHAPTERS}


def test_importing_the_package_imports_no_module_of_it_and_not_torch():
    run("import sys, encoder_lib; assert not [m for m in sys.modules if m.startswith(('encoder_lib.', 'torch'))]")


def test_a_module_comes_when_it_is_used_and_brings_no_later_chapter():
    run(
        "import sys, encoder_lib\n"
        "assert encoder_lib.embedding.tokenize('A b') == ['a', 'b']\n"
        "from encoder_lib import positional_encoding\n"
        "import encoder_lib.attention\n"
        "assert encoder_lib.attention is sys.modules['encoder_lib.attention']\n"
        "assert positional_encoding is encoder_lib.positional_encoding\n"
        "loaded = {m for m in sys.modules if m.startswith('encoder_lib.')}\n"
        "names = {'_checks', 'vocabulary', 'embedding', 'positional_encoding', 'attention'}\n"
        "assert loaded == {f'encoder_lib.{name}' for name in names}, loaded"
    )


def test_the_package_lists_its_modules_and_refuses_other_names():
    assert {*encoder_lib.CHAPTERS, "running_example"} <= set(dir(encoder_lib))
    with pytest.raises(AttributeError, match="no attribute 'decoder'"):
        encoder_lib.decoder  # noqa: B018
    with pytest.raises(ImportError, match="decoder"):
        from encoder_lib import decoder  # noqa: F401


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_the_library_prints_nothing_seeds_nothing_and_picks_no_device(path):
    tree = ast.parse(path.read_text())
    called = {
        node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
    }
    assert not called & {"print", "manual_seed", "seed", "cuda", "set_default_dtype", "set_default_device"}


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_every_public_name_has_a_docstring(path):
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
            assert ast.get_docstring(node), f"{path.name}: {node.name}"


def test_shapes_in_signatures_are_checked_while_tests_run():
    with pytest.raises(jaxtyping.TypeCheckError):
        embedding.image_to_patches(torch.rand(3, 5, 7), 1)


def test_without_the_check_the_library_speaks_itself(unchecked):
    with pytest.raises(ValueError, match=r"\(3, 5, 7\)"):
        embedding.image_to_patches(torch.rand(3, 5, 7), 1)
