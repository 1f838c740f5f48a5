"""The packaged defaults: complete, plain, and correct about the agents' tools."""

from __future__ import annotations

import re

import pytest

from carrel import defaults
from carrel.core.identifiers import Path, digest

CANONICAL = ["SOUL.md", "IDENTITY.md", "USER.md", "GUARDRAILS.md", "MEMORY_GUIDE.md"]
CANONICAL += ["CAPABILITIES.md", "PLATFORM.md", "ROUTER.md"]
CANONICAL += ["memory/lessons.md", "memory/preferences.md", "memory/contacts.md"]

HUMAN = {"HUMAN_NAME", "HUMAN_EMAIL", "HUMAN_TITLE", "HUMAN_TIMEZONE", "HUMAN_PRONOUNS"}
TOKENS = {
    "IDENTITY.md": {"AGENT_NAME", "TENANT_NAME"},
    "USER.md": {"AGENT_NAME", "TENANT_NAME"} | HUMAN,
}

TOOLS = {"who_am_i", "what_do_i_know", "my_stats", "session_logs", "remember", "recall", "forget"}
TOOLS |= {"memory", "memory_search", "memory_checkpoint", "memory_history"}
TOOLS |= {"read", "ls", "glob", "write", "edit", "grep", "bash"}
TOOLS |= {f"workspace_{verb}" for verb in ("list", "read", "write", "delete", "publish")}
ACTIONS = {"list_sessions", "read_session", "search", "recent"}
COMMANDS = {"view", "create", "str_replace", "insert", "delete", "rename"}
SCOPES = {"main", "shared"}

FINGERPRINTS = {1: "sha256:7f3a7bf7062296e211eca6a8978b5f3abb21220fc36ed9adeb86dd465d0bc075"}
"""Digest of each version. A tenant may have any of them, so new texts need a new number."""


def text(name: str) -> str:
    return defaults.FILES[name].decode("utf-8")


def quoted(name: str) -> set[str]:
    return set(re.findall(r"`([^`\n]+)`", text(name)))


def test_the_eleven_files_are_packaged_in_order() -> None:
    assert list(defaults.FILES) == CANONICAL


def test_the_files_of_a_version_never_change() -> None:
    listing = "".join(f"{name} {digest(content)}\n" for name, content in defaults.FILES.items())
    assert digest(listing.encode()) == FINGERPRINTS[defaults.VERSION], "raise VERSION, add a line"


@pytest.mark.parametrize("name", CANONICAL)
def test_a_file_is_plain_markdown_with_one_newline_at_its_end(name: str) -> None:
    assert Path(name).fits_wire
    assert re.match(r"# \S", text(name))
    assert re.search(r"[^\n]\n\Z", text(name))
    assert text(name).replace("\n", "").isprintable(), "no tabs, carriage returns or hidden marks"
    assert not [line for line in text(name).split("\n") if len(line) > 100 or line != line.rstrip()]


def test_no_file_exceeds_the_prompt_limits() -> None:
    sizes = [len(text(name)) for name in CANONICAL]
    assert max(sizes) < 12_000
    assert sum(sizes) < 30_000


@pytest.mark.parametrize("name", CANONICAL)
def test_tokens_appear_only_in_their_files(name: str) -> None:
    tokens = set(re.findall(r"\{\{([A-Z_]+)\}\}", text(name)))
    assert tokens == TOKENS.get(name, set())
    assert not set("{}") & set(re.sub(r"\{\{[A-Z_]+\}\}", "", text(name)))


def test_identity_has_a_name_and_four_fields_to_fill_in() -> None:
    fields = re.findall(r"^- \*\*(\w+):\*\* (.+)$", text("IDENTITY.md"), re.MULTILINE)
    assert [field for field, _ in fields] == ["Name", "Creature", "Vibe", "Emoji", "Avatar"]
    assert fields[0][1] == "{{AGENT_NAME}}"
    assert all(value[0] == "(" and value[-1] == ")" for _, value in fields[1:])


@pytest.mark.parametrize("name", CANONICAL)
def test_every_named_tool_exists(name: str) -> None:
    looks_like_a_tool = {word for word in quoted(name) if re.fullmatch(r"[a-z_]+", word)}
    assert looks_like_a_tool <= TOOLS | ACTIONS | COMMANDS | SCOPES


def test_capabilities_names_every_tool() -> None:
    assert quoted("CAPABILITIES.md") == TOOLS | ACTIONS


@pytest.mark.parametrize("name", CANONICAL)
def test_every_named_file_is_packaged_or_created_by_use(name: str) -> None:
    created = {"AGENTS.md", "MEMORY.md", "DREAMS.md", "notes/YYYY-MM-DD.md"}
    created |= {"/memories/MEMORY.md", "/memories/ideas.md", "/memories/memory/ideas.md"}
    assert set(re.findall(r"[\w/-]+\.md", text(name))) <= created | set(CANONICAL)
