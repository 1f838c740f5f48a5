"""What must stay true of the code itself, beyond what the import contracts can say."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path as File

import pytest

import carrel
import carrel.core
from carrel.core.errors import Refusal

ROOT = File(carrel.__file__).parent
HERE = File(__file__).parents[2]
FILES = sorted(ROOT.rglob("*.py"))
CORE = sorted((ROOT / "core").rglob("*.py"))
TESTS = sorted((HERE / "tests").rglob("*.py"))
BEYOND_SETTINGS = [file for file in FILES if file != ROOT / "settings.py"]

MAY_IMPORT = {"__future__", "ahocorasick_rs", "base64", "bisect", "carrel.core", "collections"}
MAY_IMPORT |= {"dataclasses", "datetime", "difflib", "enum", "fnmatch", "functools", "hashlib"}
MAY_IMPORT |= {"hmac", "html", "itertools", "json", "math", "msgspec", "re", "typing"}
MAY_IMPORT |= {"re2", "unicodedata"}
CLOCK = {"now", "today", "utcnow"}


def name_of(file: File) -> str:
    return str(file.relative_to(HERE))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            yield node.module or "."
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


@pytest.mark.parametrize("file", CORE, ids=name_of)
def test_the_core_is_pure(file: File) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    for module in imported(tree):
        assert any(f"{module}.".startswith(f"{pure}.") for pure in MAY_IMPORT), module
    for node in ast.walk(tree):
        assert not isinstance(node, ast.AsyncFunctionDef | ast.Await)
        assert not (isinstance(node, ast.Attribute) and node.attr in CLOCK), "the core has no clock"
        assert not (isinstance(node, ast.Name) and node.id in {"open", "print", "input"})


def is_environment(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and ast.unparse(node) in {"os.environ", "os.getenv"}


def writes_to(node: ast.AST) -> ast.AST | None:
    """What `x[…] = …` and `x.update(…)` write to: x."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return node.value
    if isinstance(node, ast.Attribute) and node.attr == "update":
        return node.value
    return None


@pytest.mark.parametrize("file", BEYOND_SETTINGS, ids=name_of)
def test_only_settings_reads_the_environment(file: File) -> None:
    nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
    written = {id(target) for node in nodes if (target := writes_to(node))}
    for node in nodes:
        assert not is_environment(node) or id(node) in written, ast.unparse(node)
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            assert not {"environ", "getenv"} & {alias.name for alias in node.names}


def every_refusal(of: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    for each in of.__subclasses__():
        yield each
        yield from every_refusal(each)


def statuses() -> Iterator[dict[type[Refusal], int]]:
    """The table of each face that has one: `problems.STATUS`."""
    for face in pkgutil.iter_modules([str(ROOT / "faces")], "carrel.faces."):
        if face.ispkg and importlib.util.find_spec(f"{face.name}.problems"):
            yield importlib.import_module(f"{face.name}.problems").STATUS


def test_every_refusal_has_a_status_in_every_face() -> None:
    for module in pkgutil.iter_modules(carrel.core.__path__, "carrel.core."):
        importlib.import_module(module.name)
    tables = list(statuses())
    assert tables
    for table in tables:
        assert set(table) == set(every_refusal())
        assert all(400 <= status < 600 for status in table.values())


def test_every_refusal_says_what_it_is_by_a_code_of_its_own() -> None:
    codes = [refusal.code for refusal in every_refusal()]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", code) for code in codes)
    assert all(refusal.__doc__ for refusal in every_refusal())


VAGUE = {"base", "common", "data", "handler", "helper", "helpers", "impl", "info", "manager"}
VAGUE |= {"misc", "processor", "service", "services", "shared", "stuff", "util", "utils"}


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_nothing_has_a_name_that_says_nothing(file: File) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    classes = [node.name for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    words = {word.lower() for name in classes for word in re.findall("[A-Z][a-z]+", name)}
    assert not (words | set(file.stem.split("_"))) & VAGUE


@pytest.mark.parametrize("file", [*FILES, *TESTS], ids=name_of)
def test_every_file_says_what_it_is_for_and_stays_short(file: File) -> None:
    text = file.read_text("utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert text.count("\n") <= 400


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_function_is_longer_than_a_screen(file: File) -> None:
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            assert (node.end_lineno or 0) - node.lineno < 50, node.name


@pytest.mark.parametrize("file", TESTS, ids=name_of)
def test_no_test_pretends(file: File) -> None:
    tree = ast.parse(file.read_text("utf-8"))
    assert not {"mock", "unittest.mock", "pytest_mock"} & set(imported(tree))
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr not in {"skip", "skipif", "xfail", "importorskip"}, node.lineno


UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|NotImplemented" r"Error)\b")


@pytest.mark.parametrize("file", [*FILES, *TESTS], ids=name_of)
def test_nothing_is_left_for_later(file: File) -> None:
    assert not UNFINISHED.search(file.read_text("utf-8"))


POSSESSIVE_GROUP = re.compile(r"\)[*+?]\+")


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_pattern_repeats_a_group_possessively(file: File) -> None:
    """Early releases of Python 3.11 match such a group wrongly; `(?>(?:…)*)` says the same."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            assert not POSSESSIVE_GROUP.search(text), node.lineno


@pytest.mark.parametrize("file", FILES, ids=name_of)
def test_no_tuple_is_the_default_of_anext(file: File) -> None:
    """Python 3.11 raises SystemError when it comes to such a default."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "anext":
            assert not any(isinstance(given, ast.Tuple) for given in node.args), node.lineno
