"""What agents share, through the client."""

from __future__ import annotations

import pytest
from tests.client.server_fixture import Hands

from carrel_client import Client, NotFound, WorkspaceConflict


def test_items_are_put_got_listed_and_deleted(hands: Hands, client: Client) -> None:
    items = client.agent(hands.agent).items
    made = items.put("a/b ü.", "x", if_none_match="*")
    assert (made["key"], made["version"], made["etag"]) == ("a/b ü.", 1, '"v1"')
    assert items.get("a/b ü.") == made
    [row] = items.list("a/b")
    assert (row["key"], row["preview"]) == ("a/b ü.", "x")
    with pytest.raises(WorkspaceConflict):
        items.put("a/b ü.", "y", if_match='"v7"')
    assert items.put("a/b ü.", "y", if_match='"v1"', reason="to see")["version"] == 2
    assert items.get("a/b ü.", version=1)["value"] == "x"
    items.delete("a/b ü.", if_match='"v2"')
    with pytest.raises(NotFound):
        items.get("a/b ü.")
    assert items.list("a/b") == ()
    for key in (".", "..", "/"):
        assert items.put(key, "dots")["key"] == key
        items.delete(key)
