"""Names say what they stand for: no bare participles, no pronouns, no class name used twice."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path as File

import pytest

ROOT = File(__file__).parents[2]
SOURCES = [
    file
    for folder in ("src", "client/src", "bench", "docs")
    for file in sorted((ROOT / folder).rglob("*.py"))
]

BARE = frozenset(
    "told said shown kept held known found made seen asked given wanted left laid brought noted"
    " heard chosen marked settled fitted gripped aimed understood one each some whole most where"
    " what whose whom who".split()
)
"""Words that name nothing when they stand alone: told what, found which?"""

TRADE_GERUNDS = frozenset({"formatting", "logging", "tracing"})
"""Module names in -ing that are nouns of the trade."""

MAX_FILES_PER_FOLDER = 45


def parse(file: File) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


def bound_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Every name that a file binds: functions, classes, parameters, fields, values, variables."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr
            case ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.alias(asname=str(name)):
                yield node.lineno, name


def bare_names(tree: ast.AST) -> list[tuple[int, str]]:
    return [(line, name) for line, name in bound_names(tree) if name.strip("_").lower() in BARE]


def public_classes(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def test_no_name_is_a_bare_participle_or_pronoun() -> None:
    offenders = {
        f"{file.relative_to(ROOT)}:{line}": name
        for file in SOURCES
        for line, name in bare_names(parse(file))
    }
    assert not offenders


def test_no_two_public_classes_share_a_name() -> None:
    places: defaultdict[str, list[str]] = defaultdict(list)
    for file in sorted((ROOT / "src").rglob("*.py")):
        for name in public_classes(parse(file)):
            places[name].append(str(file.relative_to(ROOT)))
    assert not {name: files for name, files in places.items() if len(files) > 1}


def test_no_module_is_a_gerund() -> None:
    gerunds = [
        str(file.relative_to(ROOT))
        for file in SOURCES
        if file.stem.endswith("ing") and "_" not in file.stem and file.stem not in TRADE_GERUNDS
    ]
    assert not gerunds


def test_no_folder_holds_too_many_files() -> None:
    counts: defaultdict[File, int] = defaultdict(int)
    for file in SOURCES:
        counts[file.parent] += 1
    assert not {str(folder): n for folder, n in counts.items() if n >= MAX_FILES_PER_FOLDER}


@pytest.mark.parametrize(
    "text",
    [
        "def told(): ...",
        "class Kept: ...",
        "def f(given): ...",
        "class C:\n    seen: int",
        "SHOWN = 1",
        "def f():\n    said = 1",
        "for each in (): ...",
        "async def _told(): ...",
        "self.held = 1",
    ],
)
def test_a_bare_name_is_noticed_wherever_it_is_bound(text: str) -> None:
    assert bare_names(ast.parse(text))
