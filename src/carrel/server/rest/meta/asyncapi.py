"""The AsyncAPI document: what the server tells as it happens, over streams and webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.core.store.event import APPROVALS, RECORD_CHANGED, RUN_ENDED, RUN_STARTED, UPDATED
from carrel.core.version import VERSION
from carrel.server.rest.meta.json_schemas import BODIES, WORKSPACE

Json = dict[str, Any]

_TIME: Final = {"type": "string", "format": "date-time"}
_TEXT: Final = {"type": "string", "minLength": 1}
_RUN: Final = {
    "title": "RunChanged",
    "type": "object",
    "additionalProperties": False,
    "required": ["runId", "workflowId", "status"],
    "properties": {"runId": _TEXT, "workflowId": {"type": "string"}, "status": _TEXT},
}
_APPROVAL: Final = {
    "title": "ApprovalChanged",
    "type": "object",
    "additionalProperties": False,
    "required": ["approvalId", "agentId", "tool", "status"],
    "properties": {"approvalId": _TEXT, "agentId": _TEXT, "tool": _TEXT, "status": _TEXT},
}
_RECORD: Final = {
    "title": "RecordChanged",
    "type": "object",
    "additionalProperties": False,
    "required": ["noun", "id"],
    "properties": {"noun": _TEXT, "id": _TEXT},
}

PAYLOADS: Final[Mapping[str, tuple[str, Json]]] = {
    UPDATED: ("WorkspaceUpdated", BODIES["workspace-updated"]),
    RUN_STARTED: ("RunStarted", _RUN),
    **{type: (f"Run{status.title()}", _RUN) for status, type in RUN_ENDED.items()},
    **{type: (f"Approval{type.partition('.')[2].title()}", _APPROVAL) for type in APPROVALS},
    RECORD_CHANGED: ("RecordChanged", _RECORD),
}
"""Type → the name of its message, and the schema of its payload."""

_STREAM: Final = (
    "Server-sent events: `id` is the cursor to resume from with Last-Event-ID, `event` the type,"
    " `data` the message. Streams need a bearer token or a session; comments keep them awake."
)
_WEBHOOK: Final = (
    "Posted to the address of each webhook that wants the type, signed after the Standard Webhooks"
    " convention: `webhook-id`, `webhook-timestamp`, `webhook-signature`. Tried again with backoff"
    " until it is answered with a status of 2xx."
)


def document() -> Json:
    """AsyncAPI 3.0, of what every server of this version tells."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Carrel",
            "version": VERSION,
            "description": "What happens, told without content.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": _channels(),
        "operations": _operations(),
        "components": {
            "messages": _messages(),
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }


def _channels() -> Json:
    every = tuple(PAYLOADS)
    return {
        "workspaceEvents": _channel(
            "/v1/host/workspace/events", "Of the caller's own workspace.", (UPDATED,)
        ),
        "tenantEvents": _channel("/v1/events", "Of the whole tenant.", every),
        "runEvents": {
            **_channel(
                "/v1/runs/{runId}/events", "Of one run, until it has ended.", every, "Logged"
            ),
            "parameters": {"runId": {"description": "As `POST /v1/runs` gave it."}},
        },
        "webhooks": {
            **_channel(None, "Of the whole tenant.", every, "Posted"),
            "description": _WEBHOOK,
        },
    }


def _channel(address: str | None, summary: str, types: tuple[str, ...], form: str = "") -> Json:
    names = [PAYLOADS[type][0] + form for type in types]
    return {
        "address": address,
        "summary": summary,
        "description": _STREAM,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
    }


def _operations() -> Json:
    return {
        f"tell{name[0].upper()}{name[1:]}": {
            "action": "send",
            "channel": {"$ref": f"#/channels/{name}"},
            "summary": channel["summary"],
            "messages": [
                {"$ref": f"#/channels/{name}/messages/{message}"} for message in channel["messages"]
            ],
            **({} if name == "webhooks" else {"security": [{"$ref": _BEARER}]}),
        }
        for name, channel in _channels().items()
    }


_BEARER: Final = "#/components/securitySchemes/bearer"


def _messages() -> Json:
    return {
        name + form: {"name": type, "title": name + form, "payload": shape(type, payload)}
        for form, shape in (("", _told), ("Logged", _logged), ("Posted", _posted))
        for type, (name, payload) in PAYLOADS.items()
    }


def _told(type: str, payload: Json) -> Json:
    """An event of a workspace or of the tenant."""
    return _closed(
        {
            "eventId": _TEXT,
            "type": {"const": type},
            "payload": payload,
            "timestamp": _TIME,
            "workspace": {"anyOf": [WORKSPACE, {"type": "null"}]},
            "runId": {"type": ["string", "null"], "description": "The run that it belongs to."},
        },
        {},
    )


def _logged(type: str, payload: Json) -> Json:
    """An event of a run's own log."""
    known = BODIES["run-event"]["properties"]
    return _closed({**known, "type": {"const": type}, "payload": payload}, {})


def _posted(type: str, payload: Json) -> Json:
    """The body of a webhook: what is said of the event stands under ``data``."""
    inner = _closed(
        {**payload["properties"], "eventId": _TEXT}, {"workspace": WORKSPACE, "runId": _TEXT}
    )
    return _closed({"type": {"const": type}, "timestamp": _TIME, "data": inner}, {})


def _closed(required: Json, optional: Json) -> Json:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {**optional, **required},
    }
