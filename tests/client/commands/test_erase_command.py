"""``carrel erase`` against a running server."""

from __future__ import annotations

import pytest
from tests.client.cli_runner import CarrelCommand
from tests.client.server_fixture import AgentEditor, json_of

from carrel_client import Client, NotFound


def test_a_session_is_erased_only_after_confirmation(
    client: Client, editor: AgentEditor, carrel: CarrelCommand
) -> None:
    sessions = client.agent(editor.agent).sessions
    session, other = sessions.start(), sessions.start()
    command = ("erase", "session", editor.agent, session.id)
    assert carrel(*command).exit_code == 1
    assert carrel(*command, input="n\n").exit_code == 1
    assert sessions.get(session.id).id == session.id
    assert carrel.output(*command, input="y\n").endswith(f"{session.id}: erased\n")
    assert [row.id for row in sessions.list()] == [other.id]
    assert carrel.json(*command, "--yes", code=1) == {"ok": False, "problem": "no such session"}


def test_an_agent_is_erased_with_its_sessions(
    client: Client, editor: AgentEditor, carrel: CarrelCommand
) -> None:
    client.agent(editor.agent).sessions.start()
    assert carrel.json("erase", "agent", editor.agent, "--yes") == {"ok": True}
    with pytest.raises(NotFound):
        client.agents.get(editor.agent)
    again = carrel("erase", "agent", editor.agent, "--yes")
    assert (again.exit_code, again.stdout) == (1, "")
    assert f"no such agent: {editor.agent}" in again.stderr


def test_a_person_is_erased_by_email_address(
    client: Client, editor: AgentEditor, carrel: CarrelCommand
) -> None:
    email = f"{editor.agent}@example.org"
    person = {"name": "Ida", "email": email, "role": "member"}
    id = json_of(editor.http.post("/v1/people", json=person))["id"]
    assert carrel.output("erase", "person", email.upper(), "--yes") == f"{email.upper()}: erased\n"
    assert id not in {record.id for record in client.people.list()}
    unknown = carrel("erase", "person", email, "--yes")
    assert (unknown.exit_code, unknown.stdout) == (1, "")
