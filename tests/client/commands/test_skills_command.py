"""``carrel skills``, against a running server."""

from __future__ import annotations

import re

from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor, json_of

SKILL_MD = "---\nname: pdf\ndescription: Reads pages\n---\n"


def test_skills_are_listed_with_their_state(editor: AgentEditor, carrel: CarrelCommand) -> None:
    editor.put("skills/pdf/SKILL.md", SKILL_MD, "templates")
    editor.put("skills/pdf/x.md", "x", "templates")
    editor.put("skills/bad/SKILL.md", "none")
    listed = carrel("skills", editor.agent)
    assert re.search(r"^bad +invalid +1 +\w{12}", listed.stdout, re.M)
    assert re.search(r"^pdf +valid +2 +\w{12} +Reads pages$", listed.stdout, re.M)
    assert "bad: SKILL.md: it must start with front matter (---)" in listed.stderr
    [pdf] = carrel.json("skills", f"templates/{editor.template}")["skills"]
    assert (pdf["name"], pdf["valid"], pdf["digest"][:7]) == ("pdf", True, "sha256:")
    assert carrel("skills", "no-such-agent").exit_code == 1


def test_an_update_of_a_pinned_skill_is_shown(editor: AgentEditor, carrel: CarrelCommand) -> None:
    editor.put("skills/pdf/SKILL.md", SKILL_MD, "templates")
    policy = json_of(editor.http.get("/v1/policy"))
    pinned = {"pattern": "skills/**", "class": "pinned"}
    json_of(editor.http.put("/v1/policy", json={**policy, "classes": [pinned]}))
    editor.put("skills/pdf/SKILL.md", SKILL_MD.replace("pages", "more"), "templates")
    assert re.search(r"^pdf +update available +1", carrel.output("skills", editor.agent), re.M)
    json_of(
        editor.http.put("/v1/policy", json=policy, headers={"Carrel-Reason": "end of the test"})
    )
