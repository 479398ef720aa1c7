"""Imports go one way: a room of the package may import from the rooms before it, and from nothing else of pcpo.

The source is read, not run, so imports inside functions, behind TYPE_CHECKING and through importlib count too.
"""

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "pcpo"

ROOMS = ["core", "rules", "rl", "tasks", "training", "experiments", "cli", "__main__"]
# The mathematics stands on these alone. Whatever else it seems to need belongs in a later room.
MATHEMATICS = {"core", "rules"}
ALLOWED_IN_MATHEMATICS = {"jax", "jaxtyping", "numpy", "pcpo"} | sys.stdlib_module_names
# All that pcpo/__init__.py may define by itself: the two functions are Python's hooks for lazy re-exports.
ALLOWED_IN_ROOT = {"__version__", "__all__", "__getattr__", "__dir__"}


def imported_modules(node: ast.AST, package: str) -> Iterator[str]:
    """The absolute dotted names that one node of a module in `package` imports."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            parents = package.split(".")
            parents = parents[: len(parents) - node.level + 1]
            base = ".".join([*parents, base] if base else parents)
        # `from pcpo import rules` imports a room; `from pcpo.rules import pcpo` a name in it. Both begin with it.
        yield from (f"{base}.{alias.name}" for alias in node.names)
    elif isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        first = node.args[0] if node.args else None
        if name in {"import_module", "__import__"} and isinstance(first, ast.Constant):
            yield str(first.value)


def executed_on_import(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes that run when the module is imported: not function bodies, not what only type checkers read."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            waiting.extend(node.orelse)
            continue
        waiting.extend(ast.iter_child_nodes(node))


def violations(package: Path) -> list[str]:
    """One line for each breach, beginning with file:line."""
    found: list[str] = []
    for path in sorted(package.rglob("*.py")):
        file = path.relative_to(package.parent)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found += [f"{file}:{line}: {text}" for line, text in breaches(tree, file.with_suffix("").parts)]
    return list(dict.fromkeys(found))


def breaches(tree: ast.Module, parts: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """The line and the description of each breach in the module called ``".".join(parts)``."""
    package = ".".join(parts[:-1])
    for node in executed_on_import(tree):
        if any(name.split(".")[0] == "matplotlib" for name in imported_modules(node, package)):
            yield _line(node), "matplotlib is imported with the module; import it in the function that draws"
    room = parts[1]
    if room == "__init__":
        for node in tree.body:
            if not _re_exports(node):
                yield _line(node), "the package root may only re-export"
    elif room not in ROOMS:
        yield 1, f"{room!r} is no room of the design; give it its place in ROOMS, or move the file into a room"
    else:
        for node in ast.walk(tree):
            for name in imported_modules(node, package):
                if complaint := _judge(room, name):
                    yield _line(node), complaint


def _judge(room: str, name: str) -> str | None:
    """What is wrong with importing `name` in `room`, if anything."""
    top, target = [*name.split("."), ""][:2]
    if room in MATHEMATICS and top not in ALLOWED_IN_MATHEMATICS:
        return f"{room} imports {top}; the mathematics stands on jax, numpy and jaxtyping only"
    if top != "pcpo" or target == "__version__":
        return None
    if target not in ROOMS:
        return f"{room} imports from the package root, which holds every room; name the room itself"
    if ROOMS.index(target) > ROOMS.index(room):
        return f"{room} imports {target}, which comes after it ({' < '.join(ROOMS)})"
    return None


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


def _re_exports(node: ast.stmt) -> bool:
    """Whether a statement of the package root is a docstring, an import from pcpo, or one of the allowed names."""
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case ast.Import() | ast.ImportFrom():
            return all(name.split(".")[0] == "pcpo" for name in imported_modules(node, "pcpo")) or (
                isinstance(node, ast.ImportFrom) and node.module == "typing"
            )
        case ast.If(test=test, body=body, orelse=[]) if ast.unparse(test).endswith("TYPE_CHECKING"):
            return all(_re_exports(child) for child in body)
        case ast.Assign(targets=targets):
            return all(isinstance(target, ast.Name) and target.id in ALLOWED_IN_ROOT for target in targets)
        case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
            return name in ALLOWED_IN_ROOT
        case _:
            return False


def test_imports_go_one_way():
    found = violations(PACKAGE)
    assert not found, "imports against the order of the rooms:\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("file", "source", "complaint"),
    [
        ("core/planted.py", "import jax\n\nfrom pcpo.rules import pcpo\n", "planted.py:3: core imports rules"),
        ("core/planted.py", "from pcpo import cli\n", "planted.py:1: core imports cli"),
        ("core/planted.py", "from ..rules import trpo\n", "planted.py:1: core imports rules"),
        ("core/planted.py", "from .. import rules\n", "planted.py:1: core imports rules"),
        ("core/deep/planted.py", "from ...rules import trpo\n", "planted.py:1: core imports rules"),
        ("core/planted.py", "def f():\n    import pcpo.training.loop\n", "planted.py:2: core imports training"),
        ("rules/planted.py", "if TYPE_CHECKING:\n    from pcpo.rl import x\n", "planted.py:2: rules imports rl"),
        ("rules/planted.py", "import_module('pcpo.tasks.point')\n", "planted.py:1: rules imports tasks"),
        ("rules/planted.py", "from pcpo import PCPO\n", "planted.py:1: rules imports from the package root"),
        ("rules/planted.py", "import pcpo\n", "planted.py:1: rules imports from the package root"),
        ("core/planted.py", "def f():\n    import gymnasium as gym\n", "planted.py:2: core imports gymnasium"),
        ("rl/planted.py", "import matplotlib.pyplot as plt\n", "planted.py:1: matplotlib"),
        ("experiments/planted.py", "try:\n    from matplotlib import figure\nfinally:\n    pass\n", ":2: matplotlib"),
        ("planted.py", "", "planted.py:1: 'planted' is no room"),
        ("__init__.py", "import os\n", "__init__.py:1: the package root may only re-export"),
        ("__init__.py", "def helper(): ...\n", "__init__.py:1: the package root may only re-export"),
    ],
)
def test_a_planted_import_is_caught(tmp_path: Path, file: str, source: str, complaint: str):
    copy = tmp_path / "pcpo"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    assert violations(copy) == []
    planted = copy / file
    planted.parent.mkdir(parents=True, exist_ok=True)
    planted.write_text(source, encoding="utf-8")
    found = violations(copy)
    assert len(found) == 1
    assert complaint in found[0]


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("cli/planted.py", "from pcpo import core, experiments, rules\nfrom pcpo.training import loop\n"),
        ("rules/planted.py", "from pcpo import __version__\nfrom ..core import cg\nfrom . import trpo\n"),
        ("experiments/planted.py", "if TYPE_CHECKING:\n    import matplotlib\ndef draw():\n    import matplotlib\n"),
        ("core/planted.py", "import math\nimport jax.numpy as jnp\nimport numpy as np\n"),
        (
            "__init__.py",
            '"""Doc."""\nfrom pcpo.rules import pcpo as pcpo\n__version__ = "1"\ndef __getattr__(name): ...\n',
        ),
    ],
)
def test_an_allowed_import_passes(tmp_path: Path, file: str, source: str):
    planted = tmp_path / "pcpo" / file
    planted.parent.mkdir(parents=True)
    planted.write_text(source, encoding="utf-8")
    assert violations(tmp_path / "pcpo") == []


def test_importing_pcpo_does_not_import_matplotlib():
    script = """
import sys
import pcpo, pcpo.core, pcpo.rules
slow = {"matplotlib", "scipy.optimize", "tyro"} & set(sys.modules)
assert not slow, f"import pcpo also imports {slow}"
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
