"""``carrel pins``, ``accept`` and ``rollback``, over the wire and at a terminal."""

from __future__ import annotations

import hashlib
import json
import os
import pty
import re
import subprocess
from pathlib import Path as Local

from tests.client.cli_runner import Carrel
from tests.client.server_fixture import Hands, made
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


def offered(hands: Hands, text: str = "Ask first.\n") -> str:
    """Let the template say something newer; its digest."""
    hands.put(PATH, text, "templates")
    return hashlib.sha256(text.encode()).hexdigest()


def follower(hands: Hands, slug: str) -> str:
    made(
        hands.http.post(
            "/v1/agents", json={"slug": slug, "name": slug, "templateId": hands.template}
        )
    )
    return slug


def held(hands: Hands, agent: str) -> str:
    return str(made(hands.http.get(f"/v1/agents/{agent}/files/{PATH}"))["content"])


def test_pins_are_listed_with_what_is_offered(hands: Hands, carrel: Carrel) -> None:
    assert re.search(
        rf"^{PATH} +as reviewed +(\w{{12}}) +\1$", carrel.said("pins", hands.agent), re.M
    )
    digest = offered(hands)
    said = carrel.said("pins", hands.agent)
    assert re.search(rf"^{PATH} +update available +\w{{12}} +{digest[:12]}$", said, re.M)
    one = carrel("pins", hands.agent, PATH)
    assert "\n+Ask first.\n" in one.stdout
    assert f"--sha256 {digest}" in one.stderr
    [pin] = carrel.told("pins", hands.agent, PATH)["pins"]
    assert (pin["latestSha256"], pin["latestContent"]) == (digest, "Ask first.\n")
    assert carrel("pins", hands.agent, "SOUL.md").exit_code == 1
    assert carrel("pins", "no-such-agent").exit_code == 1


def test_what_was_reviewed_is_accepted_by_its_digest_and_taken_back(
    hands: Hands, carrel: Carrel
) -> None:
    before, digest = held(hands, hands.agent), offered(hands)
    assert carrel("accept", hands.agent, PATH, "--sha256", "0" * 64).exit_code == 1
    assert held(hands, hands.agent) == before
    said = carrel.said("accept", hands.agent, PATH, "--sha256", f"sha256:{digest}")
    assert said == f"{hands.agent}: {PATH}: accepted\n"
    assert held(hands, hands.agent) == "Ask first.\n"
    assert "is back at" in carrel.said("rollback", hands.agent, PATH)
    assert held(hands, hands.agent) == before
    assert carrel.told("rollback", hands.agent, PATH, "--version", 99, code=1)["ok"] is False


def test_where_nobody_can_be_asked_one_has_to_say_what(hands: Hands, carrel: Carrel) -> None:
    digest = offered(hands)
    for wrong in ([], ["--json"], ["--template", hands.template], ["--sha256", "abc"]):
        assert carrel("accept", hands.agent, PATH, *wrong).exit_code == 2
    assert carrel("accept", PATH, "--yes").exit_code == 2
    assert held(hands, hands.agent) != "Ask first.\n"
    told = carrel.told("accept", hands.agent, PATH, "--yes")
    assert (told["result"], told["pinnedSha256"]) == ("accepted", digest)
    again = carrel.told("accept", hands.agent, PATH, "--yes")
    assert again["result"] == "nothing newer is offered"


def test_all_who_follow_are_told_of_one_by_one(hands: Hands, carrel: Carrel) -> None:
    other = follower(hands, f"z{hands.agent}")
    digest = offered(hands)
    carrel.said("accept", other, PATH, "--yes")
    done = carrel("accept", "--template", hands.template, PATH, "--yes")
    assert (done.exit_code, done.stdout) == (
        0,
        f"{hands.agent}: accepted\n{other}: had it already\n",
    )
    assert "looking at agents: 2 of 2" in done.stderr
    assert held(hands, hands.agent) == held(hands, other) == "Ask first.\n"
    none = carrel.said("accept", "--template", hands.template, PATH, "--yes")
    assert none == f"{PATH}: nothing newer is offered to any agent\n"
    offered(hands, "Never ask.\n")
    late = carrel.told("accept", "--template", hands.template, PATH, "--sha256", digest, code=1)
    assert (late["ok"], late["accepted"], late["failed"]) == (False, 0, 2)
    assert [row["agent"] for row in late["results"]] == [hands.agent, other]
    said = carrel("accept", "--template", hands.template, PATH, "--sha256", digest)
    assert said.exit_code == 1
    assert said.stdout.count(": refused: ") == 2
    assert carrel("accept", "--template", "no-such", PATH, "--yes").exit_code == 1


def at_terminal(carrel: Carrel, *calls: tuple[list[str], bytes]) -> list[tuple[int, str]]:
    """The exit code of each call and all that is shown, when somebody answers its question."""
    mine, theirs = pty.openpty()
    settings = environment(Local("nowhere"), url=carrel.url, token=TOKEN)
    settings |= {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "24"}
    run = [*command(PROGRAM), json.dumps([arguments for arguments, _ in calls])]
    process = subprocess.Popen(run, env=settings, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    answers = [says for _, says in calls]
    shown = b""
    try:
        while chunk := os.read(mine, 65536):
            shown += chunk
            if answers and shown.count(b"[y/N]: ") > len(calls) - len(answers):
                os.write(mine, answers.pop(0))
    except OSError:
        pass  # Linux says so when the other side is closed
    os.close(mine)
    assert process.wait(timeout=60) == 0
    parts = re.split(r"ended with (\d+)\r\n", shown.decode())
    return [(int(code), part) for part, code in zip(parts[::2], parts[1::2], strict=False)]


def test_at_a_terminal_the_difference_is_shown_and_one_is_asked(
    hands: Hands, carrel: Carrel
) -> None:
    other = follower(hands, f"z{hands.agent}")
    offered(hands)
    one, every = at_terminal(
        carrel,
        (["accept", hands.agent, PATH], b"n\n"),
        (["accept", "--template", hands.template, PATH], b"y\n"),
    )
    assert one[0] == 1
    assert "\x1b[32m+Ask first.\x1b[0m" in one[1]
    assert "Nothing was accepted." in one[1]
    assert every[0] == 0, every[1]
    assert f"{hands.agent}, {other}:" in every[1]
    assert "Accept this for 2 agents?" in every[1]
    assert held(hands, hands.agent) == held(hands, other) == "Ask first.\n"
    [accepted] = carrel.told("log", f"{hands.agent}/{PATH}")["versions"]
    assert accepted["reason"].endswith(", for all")  # What was declined has left no trace.
