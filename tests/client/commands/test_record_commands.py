"""Agents, templates and people are listed, created, changed and deleted at the command line."""

from __future__ import annotations

import secrets
from typing import Any

import httpx
import pytest
from tests.client.cli_runner import CarrelCommand


@pytest.fixture
def suffix() -> str:
    """End of the names of one test."""
    return secrets.token_hex(5)


def test_agents_are_created_changed_and_deleted(carrel: CarrelCommand, suffix: str) -> None:
    slug, template, email = f"a{suffix}", f"t{suffix}", f"{suffix}@example.org"
    carrel.output("templates", "create", template)
    person = carrel.json("people", "create", "Ida", email)["id"]
    options = (
        "--template",
        template,
        "--human",
        email,
        "--tag",
        "b",
        "--tag",
        "a",
        "--name",
        "Ada",
    )
    id = carrel.output(
        "agents", "create", slug, *options, "--config", '{"timezone": "UTC"}'
    ).strip()
    row = carrel.json("agents", "show", slug)
    assert (row["id"], row["name"], row["humanPairId"]) == (id, "Ada", person)
    assert (row["tags"], row["config"]["timezone"]) == (["a", "b"], "UTC")
    listed = carrel.output("agents", "--template", template, "--human", email)
    assert listed.splitlines()[1].split() == [slug, "Ada", template, "Ida", "a", "b", id]
    change = ("agents", "change", slug)
    renamed = carrel.output(*change, "--name", "Bea", "--shared", "--template", "")
    assert renamed == f"{slug}: changed\n"
    changed = carrel.json(*change, "--no-tags", "--human", "")
    assert (changed["name"], changed["isShared"], changed["templateId"]) == ("Bea", True, None)
    assert (changed["tags"], changed["humanPairId"]) == ([], None)
    assert "name         Bea\n" in carrel.output("agents", "show", slug)
    assert carrel("agents", "delete", slug).exit_code == 1
    assert carrel.output("agents", "delete", slug, "--yes") == f"{slug}: deleted\n"
    assert carrel.json("agents", "show", slug, code=1)["ok"] is False


def test_a_deletion_asks_first_and_never_without_a_terminal(
    carrel: CarrelCommand, suffix: str
) -> None:
    carrel.output("templates", "create", suffix)
    refused = carrel("templates", "delete", suffix, input="y\n")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "pass --yes" in refused.stderr
    assert carrel.json("templates", "delete", suffix, code=1)["ok"] is False
    assert carrel.json("templates", "delete", suffix, "--yes") == {"ok": True, "deleted": suffix}


def test_templates_are_listed_with_the_number_of_their_agents(
    carrel: CarrelCommand, suffix: str
) -> None:
    id = carrel.output("templates", "create", suffix, "--name", "Support").strip()
    carrel.output("agents", "create", f"a{suffix}", "--template", suffix)
    [row] = carrel.json("templates", "--search", suffix)["templates"]
    assert (row["id"], row["name"], row["agentCount"]) == (id, "Support", 1)
    table = carrel.output("templates", "--search", suffix).splitlines()
    assert table[1].split() == [suffix, "Support", "1", id]
    refused = carrel("templates", "delete", suffix, "--yes")
    assert (refused.exit_code, "agents" in refused.stderr) == (1, True)
    carrel.output("templates", "change", suffix, "--slug", f"new-{suffix}")
    assert carrel.json("templates", "show", f"new-{suffix}")["id"] == id


def test_people_are_created_with_a_sign_in_link_changed_and_deleted(
    carrel: CarrelCommand, http: httpx.Client, suffix: str
) -> None:
    email = f"{suffix}@example.org"
    created = carrel.output("people", "create", "Ida", email, "--title", "Head", "--invite")
    id, link = created.splitlines()
    code = link.partition("#code=")[2]
    assert http.post("/v1/sign-in", json={"code": code}).status_code == 200
    options = ("--role", "admin", "--title", "", "--timezone", "Europe/Paris")
    changed = carrel.json("people", "change", email.upper(), *options)
    assert (changed["id"], changed["role"], changed["title"]) == (id, "admin", None)
    assert carrel.json("people", "--role", "admin", "--search", suffix)["people"] == [changed]
    assert "/sign-in#code=" in carrel.output("people", "invite", email)
    assert carrel.output("people", "delete", email, "--yes") == f"{email}: deleted\n"
    assert carrel("people", "show", email).exit_code == 1


def test_a_change_without_a_field_is_wrong_usage(carrel: CarrelCommand) -> None:
    for group in ("agents", "templates", "people", "webhooks"):
        assert carrel(group, "change", "nobody").exit_code == 2


def test_pages_have_true_totals(carrel: CarrelCommand, suffix: str) -> None:
    slugs = [f"{suffix}-{number}" for number in range(3)]
    for slug in slugs:
        carrel.output("templates", "create", slug)
        carrel.output("agents", "create", slug)
    for collection in ("templates", "agents"):
        listing = (collection, "--search", suffix, "--limit", "2")
        first = carrel.json(*listing)
        assert (len(first[collection]), first["total"]) == (2, 3)
        second = carrel.json(*listing, "--after", first["next"])
        assert (len(second[collection]), second["next"]) == (1, None)
        assert sorted(row["slug"] for row in first[collection] + second[collection]) == slugs
        assert carrel(*listing).stderr == f"2 of 3; continue with --after {first['next']}\n"
    for collection in ("people", "keys"):
        page = carrel.json(collection, "--limit", "1")
        assert len(page[collection]) == 1
        assert page["total"] == len(carrel.json(collection)[collection])


def test_options_of_a_group_hold_for_its_subcommands(carrel: CarrelCommand, suffix: str) -> None:
    carrel.output("templates", "create", suffix)
    arguments: Any = ("templates", "--json", "show", suffix)
    assert '"slug": ' in carrel.output(*arguments)
    refused = carrel("templates", "--token", "wrong", "show", suffix)
    assert refused.exit_code == 1


def test_many_agents_are_changed_after_a_dry_run(carrel: CarrelCommand, suffix: str) -> None:
    template, slugs = f"t{suffix}", [f"{letter}{suffix}" for letter in "ab"]
    carrel.output("templates", "create", template)
    for slug in slugs:
        carrel.output("agents", "create", slug, "--tag", suffix)
    change = ("agents", "change-many", "--tagged", suffix, "--template", template)
    dry = carrel.json(*change, "--dry-run")
    assert (dry["dryRun"], dry["changed"]) == (True, 2)
    assert carrel.json("agents", "show", slugs[0])["templateId"] is None
    assert carrel(*change).exit_code == 1
    assert "changed" in carrel.output(*change, "--yes")
    assert carrel.json("agents", "show", slugs[0])["templateId"] is not None
    both = (*slugs, "--remove-tag", suffix, "--add-tag", "x")
    assert carrel.json("agents", "change-many", *both, "--yes")["changed"] == 2
    assert carrel.json("agents", "show", slugs[1])["tags"] == ["x"]
    missing = carrel("agents", "change-many", f"c{suffix}", "--delete", "--yes")
    assert (missing.exit_code, "no such agent" in missing.stdout) == (1, True)
    for wrong in ((), (slugs[0], "--all", "--delete"), (slugs[0],)):
        assert carrel("agents", "change-many", *wrong).exit_code == 2
    assert carrel.json("agents", "change-many", *slugs, "--delete", "--yes")["changed"] == 2


def test_agents_and_templates_are_duplicated(carrel: CarrelCommand, suffix: str) -> None:
    carrel.output("templates", "create", f"t{suffix}")
    carrel.output("agents", "create", f"a{suffix}", "--template", f"t{suffix}")
    copy = carrel.json("agents", "duplicate", f"a{suffix}", f"b{suffix}", "--name", "Bea")
    original = carrel.json("agents", "show", f"a{suffix}")
    assert (copy["name"], copy["templateId"]) == ("Bea", original["templateId"])
    id = carrel.output("templates", "duplicate", f"t{suffix}", f"u{suffix}").strip()
    assert carrel.json("templates", "show", f"u{suffix}")["id"] == id
