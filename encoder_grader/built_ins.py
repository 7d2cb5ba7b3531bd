"""Read in a notebook's source which built-ins an answer calls; `collect` sees the calls when the code runs.

For honest learners: names are found when renamed, behind `getattr`, in helper functions and in classes. Whoever wants
to get round it can.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from torch import Tensor

MOST_OF_A_CELL, MOST_OF_ALL = 50_000, 200_000  # characters that are read; no honest notebook has as many
OWN = {"encoder_lib", "encoder_grader"}  # building on earlier chapters is what the exercises ask for

# what a class calls, where its name does not tell
CALLED_BY = {
    "MultiheadAttention": {"multi_head_attention_forward", "scaled_dot_product_attention"},
    "TransformerEncoderLayer": {"_transformer_encoder_layer_fwd", "multi_head_attention_forward", "layer_norm"},
    "AdaptiveLogSoftmaxWithLoss": {"log_softmax"},
}
CALLED_BY |= dict.fromkeys(
    ("TransformerDecoderLayer", "TransformerEncoder", "TransformerDecoder", "Transformer"),
    CALLED_BY["TransformerEncoderLayer"],
)


def built_ins_called(cells: Sequence[str], names: Iterable[str], forbidden: Iterable[str]) -> dict[str, set[str]]:
    """The forbidden functions that each answer calls, itself or in what it uses.

    Args:
        cells: the source of the notebook's code cells, up to the test cell.
        names: the answers.
        forbidden: the names of the functions that may not be called.

    Returns:
        answer → forbidden functions, without the answers that call none. Cells that do not parse are passed over.
    """
    source, forbidden = _Source(), set(forbidden)
    for cell in cells:
        source.read(cell)
    found = {name: source.calls(name) & forbidden for name in names}
    return {name: calls for name, calls in found.items() if calls}


class _Source:
    """What the cells of a notebook define and import."""

    def __init__(self):
        self.imported: dict[str, str] = {}  # name → what it stands for: F → torch.nn.functional
        self.defined: dict[str, list[ast.AST]] = {}
        self.known: dict[int, tuple[set[str], set[str]]] = {}  # definition → the names and the functions in it
        self.size = 0

    def read(self, cell: str) -> None:
        if len(cell) > MOST_OF_A_CELL or self.size + len(cell) > MOST_OF_ALL:
            return
        self.size += len(cell)
        try:
            tree = ast.parse(_plain_python(cell))
        except Exception:  # whatever a cell holds, it is only not read
            return
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    name = alias.asname or alias.name.partition(".")[0]
                    self.imported[name] = alias.name if alias.asname else name
            elif isinstance(node, ast.ImportFrom) and node.module:
                self.imported |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.defined[node.name] = [node]
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                for target in (each for one in targets for each in ast.walk(one) if isinstance(each, ast.Name)):
                    self.defined.setdefault(target.id, []).append(node.value)

    def calls(self, answer: str) -> set[str]:
        """The functions named in an answer and in all that it uses."""
        found, seen, waiting = set(), set(), [answer]
        while waiting:
            name = waiting.pop()
            if name in seen:
                continue
            seen.add(name)
            for definition in self.defined.get(name, []):
                names, functions = self._facts(definition)
                waiting += names - seen
                found |= functions
        return found

    def _facts(self, definition: ast.AST) -> tuple[set[str], set[str]]:
        """The names and the functions in a definition; each is walked once, however many names it has."""
        if id(definition) not in self.known:
            nodes = list(ast.walk(definition))
            names = {node.id for node in nodes if isinstance(node, ast.Name)}
            self.known[id(definition)] = names, {name for node in nodes for name in self._named(node)}
        return self.known[id(definition)]

    def _named(self, node: ast.AST) -> set[str]:
        """The functions that one node of the source names."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            words = [word.value for word in node.args[1:2] if isinstance(word, ast.Constant)]
            return {name for word in words if isinstance(word, str) for name in _functions(word)}
        if isinstance(node, ast.Name) and node.id in self.imported and node.id not in self.defined:
            return self._functions_of(self.imported[node.id])
        if not isinstance(node, ast.Attribute):
            return set()
        path, root = [node.attr], node.value
        while isinstance(root, ast.Attribute):
            path.append(root.attr)
            root = root.value
        if isinstance(root, ast.Name) and root.id in self.imported:
            return self._functions_of(".".join([self.imported[root.id], *reversed(path)]))
        if isinstance(root, ast.Name) and root.id in ("self", "cls"):
            return set()
        return _functions(node.attr) if hasattr(Tensor, node.attr) else set()  # a method of some tensor

    def _functions_of(self, path: str) -> set[str]:
        root, *parts = path.split(".")
        return set() if root in OWN else {name for part in parts for name in _functions(part)}


def _functions(name: str) -> set[str]:
    """The functions that a name stands for: `BatchNorm1d` for batch_norm, `_softmax` for softmax."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    snake = re.sub(r"_?\dd$", "", snake)
    return {name, snake, snake.strip("_"), re.sub(r"^(lazy|sync|special|native|aten)_", "", snake)} | CALLED_BY.get(
        name, set()
    )


def _plain_python(cell: str) -> str:
    """A cell without IPython's magics, which take long to be taken out where there are many."""
    if not any(mark in cell for mark in "%!?"):
        return cell
    if cell.count("%") + cell.count("!") + cell.count("?") > 200:
        raise ValueError("too many marks of IPython")
    from IPython.core.inputtransformer2 import TransformerManager  # only a grader needs it

    return TransformerManager().transform_cell(cell)
