"""Rules of the code that import contracts cannot express."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import pkgutil
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cache
from pathlib import Path as File

import carrel
import carrel.core
from carrel.core.errors import Refusal

ROOT = File(carrel.__file__).parent
HERE = File(__file__).parents[2]
FILES = sorted([*ROOT.rglob("*.py"), *(HERE / "client" / "src").rglob("*.py")])
CORE = sorted((ROOT / "core").rglob("*.py"))
TESTS = sorted((HERE / "tests").rglob("*.py"))
BEYOND_SETTINGS = [file for file in FILES if file != ROOT / "settings.py"]

MAY_IMPORT = {"__future__", "ahocorasick_rs", "base64", "bisect", "carrel.core", "collections"}
MAY_IMPORT |= {
    "dataclasses",
    "datetime",
    "difflib",
    "enum",
    "errno",
    "fnmatch",
    "functools",
    "hashlib",
}
MAY_IMPORT |= {"hmac", "html", "itertools", "json", "math", "msgspec", "re", "typing"}
MAY_IMPORT |= {"re2", "unicodedata", "yaml"}
CLOCK = {"now", "today", "utcnow"}


Finding = Iterator[object]


def offenders(files: Sequence[File], find: Callable[[File], Finding]) -> dict[str, list[object]]:
    """The findings of each file. One test for all files, since thousands of tests take long."""
    findings = {str(file.relative_to(HERE)): list(find(file)) for file in files}
    return {name: values for name, values in findings.items() if values}


@cache
def text_of(file: File) -> str:
    return file.read_text("utf-8")


@cache
def module_of(file: File) -> ast.Module:
    return ast.parse(text_of(file))


@cache
def nodes_of(file: File) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(module_of(file)))


def has_any(file: File, words: Collection[str]) -> bool:
    """Whether a file contains one of the words; otherwise no name in it can match."""
    return any(word in text_of(file) for word in words)


def imported(file: File) -> Iterator[str]:
    for node in nodes_of(file):
        if isinstance(node, ast.ImportFrom):
            yield node.module or "."
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def impure(file: File) -> Finding:
    for module in imported(file):
        if not any(f"{module}.".startswith(f"{pure}.") for pure in MAY_IMPORT):
            yield module
    for node in nodes_of(file):
        if isinstance(node, ast.AsyncFunctionDef | ast.Await):
            yield "async", getattr(node, "lineno", 0)
        if isinstance(node, ast.Attribute) and node.attr in CLOCK:
            yield "a clock", node.lineno
        if isinstance(node, ast.Name) and node.id in {"open", "print", "input"}:
            yield node.id, node.lineno


def test_core_is_pure() -> None:
    assert not offenders(CORE, impure)


ENVIRONMENT = {"environ", "getenv"}


def is_environment(node: ast.AST) -> bool:
    is_named = isinstance(node, ast.Attribute) and node.attr in ENVIRONMENT
    return is_named and ast.unparse(node) in {"os.environ", "os.getenv"}


def writes_to(node: ast.AST) -> ast.AST | None:
    """The target of `x[…] = …` and `x.update(…)`: x."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):
        return node.value
    if isinstance(node, ast.Attribute) and node.attr == "update":
        return node.value
    return None


def read_environment(file: File) -> Finding:
    if not has_any(file, ENVIRONMENT):
        return
    written = {id(target) for node in nodes_of(file) if (target := writes_to(node))}
    for node in nodes_of(file):
        if is_environment(node) and id(node) not in written:
            yield ast.unparse(node)
        if isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from ENVIRONMENT & {alias.name for alias in node.names}


def test_only_settings_reads_the_environment() -> None:
    assert not offenders(BEYOND_SETTINGS, read_environment)


def every_refusal(of: type[Refusal] = Refusal) -> Iterator[type[Refusal]]:
    for refusal in of.__subclasses__():
        yield refusal
        yield from every_refusal(refusal)


def statuses() -> Iterator[dict[type[Refusal], int]]:
    """The status table of each protocol that has one: `error_responses.REFUSAL_STATUS`."""
    for face in pkgutil.iter_modules([str(ROOT / "server")], "carrel.server."):
        if face.ispkg and importlib.util.find_spec(f"{face.name}.error_responses"):
            yield importlib.import_module(f"{face.name}.error_responses").REFUSAL_STATUS


def test_every_refusal_has_a_status_in_every_protocol() -> None:
    for module in pkgutil.walk_packages(carrel.core.__path__, "carrel.core."):
        importlib.import_module(module.name)
    tables = list(statuses())
    assert tables
    for table in tables:
        assert set(table) == set(every_refusal())
        assert all(400 <= status < 600 for status in table.values())


def test_every_refusal_has_its_own_code() -> None:
    codes = [refusal.code for refusal in every_refusal()]
    assert len(codes) == len(set(codes))
    assert all(re.fullmatch("[a-z]+(_[a-z]+)*", code) for code in codes)
    assert all(refusal.__doc__ for refusal in every_refusal())


VAGUE = {
    "base",
    "common",
    "data",
    "helper",
    "helpers",
    "impl",
    "info",
    "manager",
    "misc",
    "processor",
}
VAGUE |= {"service", "services", "stuff", "util", "utils"}


def vague_words(file: File) -> Finding:
    classes = [node.name for node in nodes_of(file) if isinstance(node, ast.ClassDef)]
    words = {word.lower() for name in classes for word in re.findall("[A-Z][a-z]+", name)}
    yield from (words | set(file.stem.split("_"))) & VAGUE


def test_names_contain_no_vague_words() -> None:
    assert not offenders(FILES, vague_words)


def silent_or_long(file: File) -> Finding:
    if not ast.get_docstring(module_of(file)):
        yield "does not say what it is for"
    if (lines := text_of(file).count("\n")) > 400:
        yield lines


def test_every_file_has_a_docstring_and_is_short() -> None:
    assert not offenders([*FILES, *TESTS], silent_or_long)


def long_functions(file: File) -> Finding:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    functions = [node for node in nodes_of(file) if isinstance(node, kinds)]
    yield from (
        function.name
        for function in functions
        if (function.end_lineno or 0) - function.lineno >= 50
    )


def test_no_function_is_longer_than_50_lines() -> None:
    assert not offenders(FILES, long_functions)


WAYS_OUT = {"skip", "skipif", "xfail", "importorskip"}


def skipped_tests(file: File) -> Finding:
    if not has_any(file, {"mock", *WAYS_OUT}):
        return
    yield from {"mock", "unittest.mock", "pytest_mock"} & set(imported(file))
    for node in nodes_of(file):
        if isinstance(node, ast.Attribute) and node.attr in WAYS_OUT:
            yield node.attr, node.lineno


def test_no_test_is_skipped() -> None:
    assert not offenders(TESTS, skipped_tests)


UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|NotImplemented" r"Error)\b")


def test_no_unfinished_work_is_marked() -> None:
    assert not offenders([*FILES, *TESTS], lambda file: iter(UNFINISHED.findall(text_of(file))))


POSSESSIVE_GROUP = re.compile(r"\)[*+?]\+")


def possessive_groups(file: File) -> Finding:
    for node in nodes_of(file):
        if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if POSSESSIVE_GROUP.search(text):
                yield node.lineno


def test_no_pattern_repeats_a_group_possessively() -> None:
    """Early releases of Python 3.11 match such a group wrongly; `(?>(?:…)*)` is equivalent."""
    assert not offenders(FILES, possessive_groups)


def tuples_of_anext(file: File) -> Finding:
    if not has_any(file, {"anext"}):
        return
    for node in nodes_of(file):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "anext":
            yield from (node.lineno for argument in node.args if isinstance(argument, ast.Tuple))


def test_no_tuple_is_the_default_of_anext() -> None:
    """Python 3.11 raises SystemError for such a default."""
    assert not offenders(FILES, tuples_of_anext)
