"""Rules of names: no bare participles or pronouns, unique class names, no gerund modules."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path as File

import pytest

ROOT = File(__file__).parents[2]
SOURCES = [
    file
    for folder in ("src", "client/src", "bench", "compat", "docs", "tests")
    for file in sorted((ROOT / folder).rglob("*.py"))
]

BARE_WORDS = {"told", "said", "shown", "kept", "held", "known", "found", "made", "seen", "asked"}
BARE_WORDS |= {"given", "wanted", "left", "laid", "brought", "noted", "heard", "chosen", "marked"}
BARE_WORDS |= {
    "settled",
    "fitted",
    "gripped",
    "aimed",
    "understood",
    "one",
    "each",
    "some",
    "whole",
}
BARE_WORDS |= {"most", "where", "what", "whose", "whom", "who"}
"""Participles and pronouns that do not say what is told, found or asked."""

API_FIELDS = {"asked", "kept"}
"""Fields of the API's JSON, which are allowed as fields of structs."""

ALLOWED_GERUNDS = frozenset({"formatting", "logging", "tracing"})
"""Module names in -ing that are nouns."""

MAX_FILES_PER_FOLDER = 45


@cache
def parse(file: File) -> ast.Module:
    return ast.parse(file.read_text("utf-8"))


BINDING_NODES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.arg, ast.Name, ast.Attribute),
    *(ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.alias),
)


def bound_name(node: ast.AST) -> str | None:
    """Name that a node binds: a function, class, parameter, field, fixture or variable."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.arg(arg=name):
            return name
        case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return name
        case ast.ExceptHandler(name=name) | ast.MatchAs(name=name) | ast.MatchStar(name=name):
            return name
        case ast.alias(asname=name):
            return name
        case _:
            return None


def api_fields(tree: ast.AST) -> set[int]:
    """Ids of the nodes in class bodies that are fields of the API."""
    return {
        id(statement.target)
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and statement.target.id in API_FIELDS
    }


def bare_names(tree: ast.AST) -> list[tuple[int, str]]:
    bound = [
        (node, name)
        for node in ast.walk(tree)
        if isinstance(node, BINDING_NODES)
        and (name := bound_name(node))
        and name.strip("_").lower() in BARE_WORDS
    ]
    allowed = api_fields(tree) if bound else set()
    sides = {"left"} if bound and "right" in bound_names(tree) else set()
    return [
        (getattr(node, "lineno", 0), name)
        for node, name in bound
        if id(node) not in allowed and name not in sides
    ]


def bound_names(tree: ast.AST) -> set[str]:
    """All names that a module binds; beside `right`, `left` is a side."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, BINDING_NODES))
    return {name for node in nodes if (name := bound_name(node))}


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
        if file.stem.endswith("ing") and "_" not in file.stem and file.stem not in ALLOWED_GERUNDS
    ]
    assert not gerunds


def test_folders_have_fewer_than_45_files() -> None:
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
        "@pytest.fixture\ndef kept(): ...",
        "with f() as opened, g() as found: ...",
        "[made for made in ()]",
    ],
)
def test_bare_names_are_detected_in_every_binding(text: str) -> None:
    assert bare_names(ast.parse(text))


def test_bodies_of_records_are_read_through_their_structs() -> None:
    """A key of a stored body is spelt once, in the struct of its record type."""
    by_key = [
        f"{file.relative_to(ROOT)}:{node.lineno}"
        for file in sorted((ROOT / "src").rglob("*.py"))
        for node in ast.walk(parse(file))
        if isinstance(node, ast.Subscript | ast.Attribute)
        and (isinstance(node, ast.Subscript) or node.attr == "get")
        and isinstance(node.value, ast.Attribute)
        and node.value.attr == "body"
        and ast.unparse(node.value.value) != "request"
    ]
    assert by_key == []
