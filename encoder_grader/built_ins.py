"""Read in a notebook's source which built-ins an answer calls; `collect` sees the calls when the code runs.

For honest learners: names are found when renamed, behind `getattr`, in helper functions and in classes. Whoever wants
to get round it can.
"""

from __future__ import annotations

import ast
import re
import symtable
from collections.abc import Iterable, Iterator, Sequence

from torch import Tensor

MOST_OF_A_CELL, MOST_OF_ALL = 50_000, 200_000  # characters that are read; no honest notebook has as many
# `%magic`, `!command`, `names = !command`, `?help`, `help?`, each alone in its line
MAGIC = re.compile(r"^(\s*)(?:[%!?].*|[\w, ]+=\s*[%!].*|%{0,2}[\w.*]+\?{1,2}\s*)$")
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
        self.defined: dict[str, list[ast.AST]] = {}  # by the cells themselves, not inside of a function or a class
        self.own: set[str] = set()  # names of methods and attributes that the cells define
        self.known: dict[int, tuple[set[str], set[str]]] = {}  # definition → the names and the functions in it
        self.size = 0

    def read(self, cell: str) -> None:
        if len(cell) > MOST_OF_A_CELL or self.size + len(cell) > MOST_OF_ALL:
            return
        self.size += len(cell)
        try:
            try:
                tree = ast.parse(cell)
            except SyntaxError:
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
            elif isinstance(node, ast.ClassDef):
                self.own |= {each.name for each in node.body if isinstance(each, ast.FunctionDef)}
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                self.own.add(node.attr)
            elif isinstance(node, ast.keyword) and node.arg:
                self.own.add(node.arg)
        for node in _of_the_cell(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                self.defined[node.name] = [node]
            elif isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    for name in _targets(target):
                        self.defined.setdefault(name, []).append(node.value)

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
        """The names from outside of a definition and the functions in it; each is walked once."""
        if id(definition) not in self.known:
            outer = _from_outside(definition)
            functions = {name for node in _chains(definition) for name in self._named(node, outer)}
            self.known[id(definition)] = outer, functions
        return self.known[id(definition)]

    def _named(self, node: ast.AST, outer: set[str]) -> set[str]:
        """The functions that one node of the source names; `outer` are the names that stand for what others define."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
            words = [word.value for word in node.args[1:2] if isinstance(word, ast.Constant)]
            return {name for word in words if isinstance(word, str) for name in _functions(word)}
        if isinstance(node, ast.Name) and node.id in outer & self.imported.keys() - self.defined.keys():
            return self._functions_of(self.imported[node.id])
        if not isinstance(node, ast.Attribute):
            return set()
        path, root = [node.attr], node.value
        while isinstance(root, ast.Attribute):
            path.append(root.attr)
            root = root.value
        if isinstance(root, ast.Name) and root.id in outer & self.imported.keys():
            return self._functions_of(".".join([self.imported[root.id], *reversed(path)]))
        if isinstance(root, ast.Name) and root.id in ("self", "cls"):
            return set()
        # methods of some tensor; whose it is, where the cells define one of this name, shows when it is called
        methods = {name for name in path if name not in self.own and hasattr(Tensor, name)}
        return {name for method in methods for name in _functions(method)}

    def _functions_of(self, path: str) -> set[str]:
        root, *parts = path.split(".")
        return set() if root in OWN else {name for part in parts for name in _functions(part)}


def _of_the_cell(tree: ast.AST) -> Iterator[ast.AST]:
    """The nodes that are run with a cell, not with a function or a class in it."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            waiting += reversed(list(ast.iter_child_nodes(node)))


def _chains(definition: ast.AST) -> Iterator[ast.AST]:
    """All nodes; of a chain `a.b.c` the whole, not its beginnings as well."""
    waiting = [definition]
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.Attribute):
            waiting += ast.iter_child_nodes(node)
            continue
        while isinstance(node, ast.Attribute):
            node = node.value
        waiting.append(node)


def _targets(target: ast.AST) -> Iterator[str]:
    """The names that an assignment gives a value, or a part of it."""
    if isinstance(target, ast.Name):
        yield target.id
    elif isinstance(target, ast.Tuple | ast.List):
        for each in target.elts:
            yield from _targets(each)
    elif isinstance(target, ast.Attribute | ast.Subscript | ast.Starred):
        yield from _targets(target.value)


def _from_outside(definition: ast.AST) -> set[str]:
    """The names in a definition that it does not define itself, and those that it imports."""
    try:
        waiting = [symtable.symtable(ast.unparse(definition), "a cell", "exec")]
    except Exception:  # what cannot be taken apart is taken whole
        return {node.id for node in ast.walk(definition) if isinstance(node, ast.Name)}
    names = set()
    while waiting:
        table = waiting.pop()
        waiting += table.get_children()
        outermost = table.get_type() == "module"
        for symbol in table.get_symbols():
            if symbol.is_imported() or (symbol.is_referenced() and (outermost or symbol.is_global())):
                names.add(symbol.get_name())
    return names


def _functions(name: str) -> set[str]:
    """The functions that a name stands for: `BatchNorm1d` for batch_norm, `_softmax` for softmax."""
    snake = re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()
    snake = re.sub(r"_?\dd$", "", snake)
    return {name, snake, snake.strip("_"), re.sub(r"^(lazy|sync|special|native|aten)_", "", snake)} | CALLED_BY.get(
        name, set()
    )


def _plain_python(cell: str) -> str:
    """A cell that Python alone cannot read, without IPython's magics, line by line."""
    lines = cell.splitlines()
    if lines and lines[0].startswith("%%"):  # %%time and the like run the rest of the cell
        lines = lines[1:]
    return "\n".join(MAGIC.sub(r"\1pass", line) for line in lines)
