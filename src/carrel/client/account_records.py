"""Sandboxes and shared workspaces of the account over HTTP, as the server tells of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.client.drivers import Driver, HttpRequest, Resource, Steps, operation
from carrel.client.errors import Forbidden, InvalidResponse, Malformed, Missing, Refusal, TooLarge
from carrel.client.requests import decode_json, encoded, get_json, send_idempotent

_ROOT: Final = "/accounts/me"
_LIST: Final = list
"""Where a verb below has that name."""
_BY_STATUS: Final[Mapping[int, type[Refusal]]] = {
    400: Malformed,
    403: Forbidden,
    404: Missing,
    413: TooLarge,
}
"""This dialect says no in a sentence, without a word for programs."""


class AccountRecords(Resource[Driver]):
    """All of one kind: ``sandboxes`` or ``workspaces``. Facts are named as in the API."""

    def __init__(self, driver: Driver, kind: str) -> None:
        super().__init__(driver)
        self._kind = kind

    @operation
    def list(self) -> Steps[tuple[Mapping[str, Any], ...]]:
        """All of them, oldest first."""
        told = yield from _with_refusal_by_status(
            get_json(HttpRequest("GET", f"{_ROOT}/{self._kind}"))
        )
        found = told.get(self._kind) if isinstance(told, Mapping) else None
        if not isinstance(found, _LIST):
            raise InvalidResponse("the answer is no list of these")
        return tuple(found)

    @operation
    def get(self, id: str) -> Steps[Mapping[str, Any]]:
        """Raises Missing."""
        return _facts(
            (yield from _with_refusal_by_status(get_json(HttpRequest("GET", self._at(id)))))
        )

    @operation
    def create(self, facts: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        """Raises Malformed."""
        request = HttpRequest("POST", f"{_ROOT}/{self._kind}", body=facts)
        return _facts(decode_json((yield from _with_refusal_by_status(send_idempotent(request)))))

    @operation
    def change(self, id: str, facts: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        """A merge-patch: None takes away. Raises Missing and Malformed."""
        request = HttpRequest("PATCH", self._at(id), body=facts)
        return _facts(decode_json((yield from _with_refusal_by_status(send_idempotent(request)))))

    @operation
    def delete(self, id: str) -> Steps[None]:
        """Raises Missing."""
        yield from _with_refusal_by_status(send_idempotent(HttpRequest("DELETE", self._at(id))))

    def _at(self, id: str) -> str:
        return f"{_ROOT}/{self._kind}/{encoded(id)}"


def _with_refusal_by_status(steps: Steps[Any]) -> Steps[Any]:
    """The same, with a refusal by its status."""
    try:
        return (yield from steps)
    except Refusal as refused:
        kind = _BY_STATUS.get(refused.status or 0)
        if kind is None or type(refused) is not Refusal:
            raise
        raise kind(refused.message, status=refused.status, code=refused.code) from None


def _facts(told: Any) -> Mapping[str, Any]:
    if not isinstance(told, Mapping) or not {"name", "config"} <= told.keys():
        raise InvalidResponse("the answer is no sandbox and no workspace")
    return told
