"""Sessions over HTTP: what is said with an agent, kept as it was said."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import InvalidResponse
from carrel.client.requests import api_path, decode_json, get_json, send_idempotent, send_with_retry


class Session(Resource[Driver]):
    """One session, as it was when it was last asked for or changed here."""

    def __init__(self, driver: Driver, facts: Mapping[str, Any]) -> None:
        super().__init__(driver)
        self.facts = facts
        """What the server last said of it, as it stands in the answer."""

    def __repr__(self) -> str:
        return f"<Session {self.id}>"

    @property
    def id(self) -> str:
        return str(self.facts["id"])

    @property
    def mode(self) -> str:
        return str(self.facts["scope"])

    def _at(self, *path: str) -> str:
        return api_path("agents", str(self.facts["agentId"]), "sessions", *path)

    @operation
    def say(
        self,
        role: str,
        content: str,
        *,
        message: str | None = None,
        plugin: str = "",
        sender: str | None = None,
    ) -> Steps[Mapping[str, Any]]:
        """Keep what a user, an assistant, a tool or the system said; what comes back is what was
        kept, secrets redacted. It is kept once, however often it had to be sent.

        Raises Taken where the session is closed.
        """
        named = {"messageId": message, "sourcePlugin": plugin, "senderId": sender}
        body = {"role": role, "content": content, **{k: v for k, v in named.items() if v}}
        answer = yield from send_idempotent(
            HttpRequest("POST", self._at(self.id, "entries"), body=body)
        )
        return _mapping(decode_json(answer), {"number", "content"}, "an entry")

    @operation
    def close(self) -> Steps[Session[Driver]]:
        """Nothing more can be said in it."""
        answer = yield from send_idempotent(HttpRequest("POST", self._at(self.id, "close")))
        self.facts = facts_of(decode_json(answer))
        return self

    @operation
    def read(self, *, after: int = 0, limit: int = 100) -> Steps[tuple[Mapping[str, Any], ...]]:
        """What was said past a number, in order; a page of it where that is much."""
        query = {"cursor": str(after), "limit": str(limit)}
        told = yield from get_json(HttpRequest("GET", self._at(self.id), query))
        self.facts = facts_of(told)
        entries = told.get("entries")
        if not isinstance(entries, list):
            raise InvalidResponse("the answer has no entries")
        return tuple(_mapping(one, {"number", "content"}, "an entry") for one in entries)

    @operation
    def lines(self) -> Steps[tuple[str, ...]]:
        """The whole transcript as lines of JSON: a header, then everything that was said."""
        answer = yield from send_with_retry(HttpRequest("GET", self._at(f"{self.id}.jsonl")))
        try:
            told = answer.content.decode()
        except UnicodeDecodeError:
            raise InvalidResponse("the transcript is not UTF-8") from None
        if not told.endswith("\n"):
            raise InvalidResponse("the transcript ends in the middle of a line")
        return tuple(told.split("\n")[:-1])


class Sessions(Resource[Driver]):
    """The sessions of one agent."""

    def __init__(self, driver: Driver, agent: str) -> None:
        super().__init__(driver)
        self._agent = agent

    @operation
    def start(
        self, id: str | None = None, *, mode: str | None = None, plugin: str = ""
    ) -> Steps[Session[Driver]]:
        """A new session, or the one of that id as it is. A mode that is not main is shared."""
        asked = {"id": id, "scope": mode, "sourcePlugin": plugin}
        body = {name: value for name, value in asked.items() if value}
        answer = yield from send_idempotent(
            HttpRequest("POST", api_path("agents", self._agent, "sessions"), body=body)
        )
        return Session(self._driver, facts_of(decode_json(answer)))

    @operation
    def get(self, id: str) -> Steps[Session[Driver]]:
        request = HttpRequest(
            "GET", api_path("agents", self._agent, "sessions", id), {"limit": "1"}
        )
        return Session(self._driver, facts_of((yield from get_json(request))))

    @operation
    def list(
        self, *, mode: str | None = None, limit: int = 100
    ) -> Steps[tuple[Session[Driver], ...]]:
        """Those in which something was said last, first."""
        query = {"limit": str(limit)} | ({"scope": mode} if mode else {})
        return (yield from self._listed(query))

    @operation
    def search(
        self, query: str, *, mode: str | None = None, limit: int = 50
    ) -> Steps[tuple[Session[Driver], ...]]:
        """Those in which something was said with these words, or words that begin so.

        Each has its ``facts["matches"]``; the best answer comes first.
        """
        asked = {"q": query, "limit": str(limit)} | ({"scope": mode} if mode else {})
        return (yield from self._listed(asked))

    def _listed(self, query: Mapping[str, str]) -> Steps[tuple[Session[Driver], ...]]:
        told = yield from get_json(
            HttpRequest("GET", api_path("agents", self._agent, "sessions"), query)
        )
        items = _mapping(told, {"items"}, "a list of sessions")["items"]
        return tuple(Session(self._driver, facts_of(one)) for one in items)


def facts_of(told: Any) -> Mapping[str, Any]:
    return _mapping(told, {"id", "agentId", "scope", "entryCount"}, "a session")


def _mapping(told: Any, names: set[str], what: str) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or not names <= told.keys():
        raise InvalidResponse(f"the answer is not {what}")
    return told
