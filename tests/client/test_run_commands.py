"""``carrel run`` and ``carrel replay``, over the wire."""

from __future__ import annotations

import re

from tests.client.cli_runner import Carrel
from tests.client.server_fixture import Hands


def begun(carrel: Carrel, *arguments: str) -> str:
    said = carrel.said("run", "start", *arguments)
    assert re.fullmatch(r"\S+\n", said)
    return said.strip()


def test_a_run_sees_what_was_there_and_says_what_changed(hands: Hands, carrel: Carrel) -> None:
    hands.put("SOUL.md", "I am {{AGENT_NAME}}.\n")
    run = begun(carrel, hands.agent, "--workflow", "nightly")
    hands.put("SOUL.md", "Bold.\n")
    hands.put("new.md", "x")
    assert carrel.said("run", "cat", run, "SOUL.md") == "I am Ada.\n"
    assert "# SOUL\nI am Ada." in carrel.said("run", "prompt", run)
    assert re.search(
        r"^SOUL.md +1 +agent-override +\w{12}$", carrel.said("run", "files", run), re.M
    )
    said = carrel.said("run", "diff", run)
    assert re.search(r"^SOUL.md +changed +1 +2$", said, re.M)
    assert re.search(r"^new.md +added +1$", said, re.M)
    assert "-I am Ada.\n+Bold.\n" in carrel.said("run", "diff", run, "SOUL.md")
    told = carrel.told("run", "diff", run)
    assert {"path": "new.md", "change": "added", "beforeVersion": None, "afterVersion": 1} in (
        told["changes"]
    )
    assert carrel.told("run", "diff", run, "SOUL.md")["diff"].endswith("+Bold.\n")
    assert carrel.told("run", "cat", run, "SOUL.md")["content"] == "I am Ada.\n"
    assert carrel("run", "cat", run, "new.md").exit_code == 1


def test_runs_are_listed_shown_and_ended(hands: Hands, carrel: Carrel) -> None:
    first, last = begun(carrel, hands.agent), begun(carrel, hands.agent, "--scope", "shared")
    assert f"{first}: failed\n" == carrel.said("run", "end", first, "--status", "failed")
    assert carrel("run", "end", first).exit_code == 1
    rows = carrel.told("run", "ls", "--agent", hands.agent)["runs"]
    assert [(row["runId"], row["status"]) for row in rows] == [(last, "running"), (first, "failed")]
    newest = carrel.said("run", "ls", "--agent", hands.agent, "--limit", "1")
    assert re.search(rf"^{last} +running +\S+Z +shared ", newest, re.M)
    assert first not in newest
    shown = carrel.said("run", "show", first)
    assert re.search(r"^status +failed$", shown, re.M)
    assert re.search(r"^files +\d+$", shown, re.M)
    carrel.said("run", "end", last, "--release")
    assert re.search(r"^files +let go$", carrel.said("run", "show", last), re.M)
    assert carrel("run", "files", last).exit_code == 1


def test_a_replay_sees_the_same_bytes(hands: Hands, carrel: Carrel) -> None:
    hands.put("SOUL.md", "then")
    run = begun(carrel, hands.agent)
    hands.put("SOUL.md", "now")
    hands.rename("Bo")
    done = carrel("replay", run)
    assert done.exit_code == 0
    twin = done.stdout.strip()
    assert re.fullmatch(rf"{twin} sees the same \d+ files as {run}\n", done.stderr)
    assert carrel.said("run", "cat", twin, "SOUL.md") == "then"
    assert carrel.said("run", "prompt", twin) == carrel.said("run", "prompt", run)
    assert re.search(rf"^replay of +{run}$", carrel.said("run", "show", twin), re.M)
    told = carrel.told("replay", run)
    assert (told["ok"], told["run"]["status"]) == (True, "running")
    carrel.said("run", "end", run, "--release")
    assert carrel("replay", run).exit_code == 1


def test_children_may_share_what_their_parent_sees(hands: Hands, carrel: Carrel) -> None:
    hands.put("SOUL.md", "then")
    parent = begun(carrel, hands.agent)
    hands.put("SOUL.md", "now")
    child = begun(carrel, "--parent", parent)
    twin = begun(carrel, "--parent", parent, "--share-snapshot")
    assert carrel.said("run", "cat", child, "SOUL.md") == "now"
    assert carrel.said("run", "cat", twin, "SOUL.md") == "then"
    assert carrel("run", "start").exit_code == 2
    assert carrel("run", "start", hands.agent, "--share-snapshot").exit_code == 2
    assert carrel("run", "show", "no-such-run").exit_code == 1
    assert carrel.told("run", "start", "--workflow", "nightly")["status"] == "running"
