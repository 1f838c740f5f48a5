"""Files of every layer, and responses that are not what was requested."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from tests.client.server_fixture import AgentEditor

from carrel_client import (
    Client,
    InvalidResponse,
    NotFound,
    WorkspaceConflict,
)

PATH = "GUARDRAILS.md"


def test_files_of_every_layer_are_written_read_and_deleted(
    editor: AgentEditor, client: Client
) -> None:
    places = [
        client.template(editor.template),
        client.defaults,
        client.workspace("shared"),
        client.agent(editor.agent),
    ]
    for number, place in enumerate(places):
        name = f"{editor.agent}-{number}.md"
        was = place.put(name, "one", if_none_match="*", reason="begun")
        place.put(name, "two", if_match=was.etag)
        with pytest.raises(WorkspaceConflict):
            place.restore(name, 1, if_match=was.etag)
        assert place.restore(name, 1).content == "one"
        assert [version.version for version in place.history(name)] == [3, 2, 1]
        [last] = place.history(name, before=2)
        assert (last.reason, last.deleted, last.size) == ("begun", False, 3)
        assert "-one" in place.diff(name, 1, 2)
        assert name in [row.path for row in place.list(name)]
        assert place.explain(name).layers[0].version == 3
        place.delete(name)
        assert place.history(name)[0].deleted
        with pytest.raises(NotFound):
            place.get(name)


@pytest.mark.parametrize("value", [[], {}, {"items": 1}, {"items": [1]}, {"items": [{}]}, None])
def test_unexpected_json_is_an_invalid_response(value: Any) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=value))
    with Client("http://127.0.0.1", "t", transport=transport) as client:
        agent = client.agent("ada")
        for ask in (
            lambda: agent.history("a.md"),
            lambda: agent.explain("a.md"),
            agent.pins,
            lambda: agent.accept("a.md", "0"),
            lambda: client.template("t").accept("a.md", "0"),
            client.runs,
            client.agents.list,
            client.people.list,
            lambda: client.people.get("p"),
        ):
            with pytest.raises(InvalidResponse):
                ask()
