"""``carrel pins``, ``accept`` and ``rollback``, against a running server and at a terminal."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import subprocess
from pathlib import Path as Local

from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor, json_of
from tests.support.server_process import TOKEN, command, environment

PATH = "GUARDRAILS.md"
PROGRAM = """
import json, sys
from carrel.cli import main
for arguments in json.loads(sys.argv[1]):
    try:
        main(arguments)
    except SystemExit as end:
        print("ended with", end.code, flush=True)
"""


def write_update(editor: AgentEditor, text: str = "Ask first.\n") -> str:
    """Change the template's file; return the digest of the new text."""
    editor.put(PATH, text, "templates")
    return hashlib.sha256(text.encode()).hexdigest()


def follower(editor: AgentEditor, slug: str) -> str:
    json_of(
        editor.http.post(
            "/v1/agents", json={"slug": slug, "name": slug, "templateId": editor.template}
        )
    )
    return slug


def read_directory(editor: AgentEditor, agent: str) -> str:
    return str(json_of(editor.http.get(f"/v1/agents/{agent}/files/{PATH}"))["content"])


def test_pins_are_listed_with_their_updates(editor: AgentEditor, carrel: CarrelCommand) -> None:
    assert re.search(
        rf"^{PATH} +up to date +(\w{{12}}) +\1$", carrel.output("pins", editor.agent), re.M
    )
    digest = write_update(editor)
    output = carrel.output("pins", editor.agent)
    assert re.search(rf"^{PATH} +update available +\w{{12}} +{digest[:12]}$", output, re.M)
    limited = carrel("pins", editor.agent, PATH)
    assert "\n+Ask first.\n" in limited.stdout
    assert f"--sha256 {digest}" in limited.stderr
    [pin] = carrel.json("pins", editor.agent, PATH)["pins"]
    assert (pin["latestSha256"], pin["latestContent"]) == (digest, "Ask first.\n")
    assert carrel("pins", editor.agent, "SOUL.md").exit_code == 1
    assert carrel("pins", "no-such-agent").exit_code == 1


def test_review_is_accepted_by_digest_and_rolled_back(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    before, digest = read_directory(editor, editor.agent), write_update(editor)
    assert carrel("accept", editor.agent, PATH, "--sha256", "0" * 64).exit_code == 1
    assert read_directory(editor, editor.agent) == before
    output = carrel.output("accept", editor.agent, PATH, "--sha256", f"sha256:{digest}")
    assert output == f"{editor.agent}: {PATH}: accepted\n"
    assert read_directory(editor, editor.agent) == "Ask first.\n"
    assert "is back at" in carrel.output("rollback", editor.agent, PATH)
    assert read_directory(editor, editor.agent) == before
    assert carrel.json("rollback", editor.agent, PATH, "--version", 99, code=1)["ok"] is False


def test_accept_without_a_terminal_needs_a_digest(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    digest = write_update(editor)
    for wrong in ([], ["--json"], ["--template", editor.template], ["--sha256", "abc"]):
        assert carrel("accept", editor.agent, PATH, *wrong).exit_code == 2
    assert carrel("accept", PATH, "--yes").exit_code == 2
    assert read_directory(editor, editor.agent) != "Ask first.\n"
    report = carrel.json("accept", editor.agent, PATH, "--yes")
    assert (report["result"], report["pinnedSha256"]) == ("accepted", digest)
    again = carrel.json("accept", editor.agent, PATH, "--yes")
    assert again["result"] == "nothing newer is offered"


def test_bulk_accept_prints_every_follower(editor: AgentEditor, carrel: CarrelCommand) -> None:
    other = follower(editor, f"z{editor.agent}")
    digest = write_update(editor)
    carrel.output("accept", other, PATH, "--yes")
    done = carrel("accept", "--template", editor.template, PATH, "--yes")
    assert (done.exit_code, done.stdout) == (
        0,
        f"{editor.agent}: accepted\n{other}: already accepted\n",
    )
    assert "loading agents: 2 of 2" in done.stderr
    assert read_directory(editor, editor.agent) == read_directory(editor, other) == "Ask first.\n"
    none = carrel.output("accept", "--template", editor.template, PATH, "--yes")
    for_all = ("rollback", "--template", editor.template, PATH)
    assert carrel(*for_all).exit_code == 2, "the accepted digest is required"
    reason = f"the pin of {other} was accepted for it alone"
    first = carrel(*for_all, "--sha256", digest)
    assert (first.exit_code, first.stdout) == (
        1,
        f"{editor.agent}: rolled back\n{other}: not rolled back: {reason}\n",
    )
    again = carrel.json(*for_all, "--sha256", digest, code=1)
    assert (again["rolledBack"], again["failed"], again["results"][0]["changed"]) == (1, 1, False)
    carrel.output("accept", editor.agent, PATH, "--yes")
    assert none == f"{PATH}: no update available for any agent\n"
    write_update(editor, "Never ask.\n")
    late = carrel.json("accept", "--template", editor.template, PATH, "--sha256", digest, code=1)
    assert (late["ok"], late["accepted"], late["failed"]) == (False, 0, 2)
    assert [row["agent"] for row in late["results"]] == [editor.agent, other]
    stale = carrel("accept", "--template", editor.template, PATH, "--sha256", digest)
    assert stale.exit_code == 1
    assert stale.stdout.count(": refused: ") == 2
    assert carrel("accept", "--template", "no-such", PATH, "--yes").exit_code == 1


def test_default_is_accepted_and_rolled_back_for_all(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    heirs = [f"{name}-{editor.agent}" for name in ("one", "two")]
    for slug in heirs:
        json_of(editor.http.post("/v1/agents", json={"slug": slug, "name": slug}))
    before, text = read_directory(editor, heirs[0]), f"Ask {editor.agent}.\n"
    json_of(editor.http.put(f"/v1/defaults/files/{PATH}", json={"content": text}))
    digest = hashlib.sha256(text.encode()).hexdigest()
    for wrong in ([heirs[0]], ["--template", editor.template], []):
        assert carrel("accept", "--defaults", *wrong, PATH).exit_code == 2
    accepted = carrel.output("accept", "--defaults", PATH, "--sha256", digest).splitlines()
    assert {f"{slug}: accepted" for slug in heirs} <= set(accepted)
    assert [read_directory(editor, slug) for slug in heirs] == [text, text]
    assert carrel("rollback", "--defaults", PATH).exit_code == 2, "the digest is required"
    report = carrel.json("rollback", "--defaults", PATH, "--sha256", digest)
    assert (report["ok"], report["failed"]) == (True, 0)
    assert set(heirs) <= {row["agent"] for row in report["results"] if row["changed"]}
    assert [read_directory(editor, slug) for slug in heirs] == [before, before]


def at_terminal(carrel: CarrelCommand, *calls: tuple[list[str], bytes]) -> list[tuple[int, str]]:
    """Exit code and output of each call at a terminal, with its questions answered."""
    mine, theirs = pty.openpty()
    settings = environment(Local("nowhere"), url=carrel.url, token=TOKEN)
    settings |= {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24"}
    run = [*command(PROGRAM), json.dumps([arguments for arguments, _ in calls])]
    process = subprocess.Popen(run, env=settings, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    answers = [answer for _, answer in calls]
    output = b""
    try:
        while chunk := os.read(mine, 65536):
            output += chunk
            if answers and output.count(b"[y/N]: ") > len(calls) - len(answers):
                os.write(mine, answers.pop(0))
    except OSError:
        pass  # Linux raises OSError when the other side is closed
    os.close(mine)
    assert process.wait(timeout=60) == 0
    parts = re.split(r"ended with (\d+)\r\n", output.decode())
    return [(int(code), part) for part, code in zip(parts[::2], parts[1::2], strict=False)]


def test_terminal_prints_the_diff_and_asks(editor: AgentEditor, carrel: CarrelCommand) -> None:
    other = follower(editor, f"z{editor.agent}")
    write_update(editor)
    single, every = at_terminal(
        carrel,
        (["accept", editor.agent, PATH], b"n\n"),
        (["accept", "--template", editor.template, PATH], b"y\n"),
    )
    assert single[0] == 1
    assert "\x1b[32m+Ask first.\x1b[0m" in single[1]
    assert "Not accepted." in single[1]
    assert every[0] == 0, every[1]
    assert f"{editor.agent}, {other}:" in every[1]
    assert "Accept this for 2 agents?" in every[1]
    assert read_directory(editor, editor.agent) == read_directory(editor, other) == "Ask first.\n"
    accepted, initial = carrel.json("log", f"{editor.agent}/{PATH}")["versions"]
    assert accepted["reason"].endswith(", for all")  # A declined review leaves no version.
    assert (accepted["layer"], initial["layer"]) == ("agent", "pins")


def test_an_update_is_declined_with_a_reason_and_offered_again_by_a_rollback(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    write_update(editor)
    assert carrel("decline", editor.agent, PATH).exit_code == 2
    output = carrel.output("decline", editor.agent, PATH, "--reason", "not yet")
    assert output == f"{editor.agent}: {PATH}: declined\n"
    assert "declined" in carrel.output("pins", editor.agent)
    assert carrel("decline", editor.agent, PATH, "--reason", "again").exit_code == 1
    [review] = carrel.json("reviews", "--agent", editor.agent, "--decision", "declined")["items"]
    assert (review["reason"], review["changed"]) == ("not yet", 1)
    assert "not yet" in carrel.output("reviews", "--agent", editor.agent)
    output = carrel.output("rollback", "--review", review["id"])
    assert output == f"{editor.agent}: rolled back\n"
    assert "update available" in carrel.output("pins", editor.agent)
    assert carrel("rollback", "--review", review["id"], "--version", "1").exit_code == 2


def test_an_update_is_merged_into_the_override(
    editor: AgentEditor, carrel: CarrelCommand, tmp_path: Local
) -> None:
    before = read_directory(editor, editor.agent)
    override = {"content": f"{before}Mine.\n", "acceptTemplateUpdate": True}
    json_of(editor.http.put(f"/v1/agents/{editor.agent}/files/{PATH}", json=override))
    write_update(editor, f"Theirs.\n{before}")
    merged = f"Theirs.\n{before}Mine.\n"
    assert carrel.output("merge", editor.agent, PATH, "--print") == merged
    assert carrel.json("merge", editor.agent, PATH)["overridden"] is True
    assert read_directory(editor, editor.agent) == merged
    write_update(editor, "Other.\n")
    assert carrel("merge", editor.agent, PATH, "--json").exit_code == 1
    edited = tmp_path / "merged.md"
    edited.write_text("Both.\n")
    assert carrel.output("merge", editor.agent, PATH, "--file", str(edited)).endswith("merged\n")
    assert read_directory(editor, editor.agent) == "Both.\n"


def test_an_update_is_accepted_for_a_part_of_the_agents(
    editor: AgentEditor, carrel: CarrelCommand
) -> None:
    follower(editor, "second")
    digest = write_update(editor)
    options = ("--template", editor.template, PATH, "--sha256", digest)
    accepted = carrel.json("accept", *options, "--agent", "second")
    assert [row["agent"] for row in accepted["results"]] == ["second"]
    assert len(accepted["waiting"]) == 1
    assert read_directory(editor, "second") == "Ask first.\n"
    assert carrel("accept", editor.agent, PATH, "--yes", "--count", "1").exit_code == 2
    assert carrel.output("rollback", "--review", accepted["reviewId"]) == "second: rolled back\n"
