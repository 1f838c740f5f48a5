"""AsyncAPI document of the event streams and webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from carrel.core.store.event import (
    APPROVALS,
    DREAM_ANSWERED,
    DREAM_PROPOSED,
    EVENT_SUMMARIES,
    RECORD_CHANGED,
    REVIEW_ANSWERED,
    REVIEW_REQUESTED,
    RUN_ENDED_BY_STATUS,
    RUN_STARTED,
    TOOL_CALLED,
    WEBHOOK_TEST,
    WORKSPACE_UPDATED,
)
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
_TOOL_CALL: Final = {
    "title": "ToolCalled",
    "type": "object",
    "additionalProperties": False,
    "required": ["runId", "agentId", "tool", "isError", "durationMs"],
    "properties": {
        **{"runId": _TEXT, "agentId": _TEXT, "tool": _TEXT},
        **{"isError": {"type": "boolean"}, "durationMs": {"type": "integer", "minimum": 0}},
    },
}
_REVIEW_REQUESTED: Final = {
    "title": "ReviewRequested",
    "type": "object",
    "additionalProperties": False,
    "required": ["path", "templateId"],
    "properties": {"path": _TEXT, "templateId": {"type": ["string", "null"]}},
}
_REVIEW_ANSWERED: Final = {
    "title": "ReviewAnswered",
    "type": "object",
    "additionalProperties": False,
    "required": ["agentId", "path", "decision"],
    "properties": {"agentId": _TEXT, "path": _TEXT, "decision": _TEXT},
}
_DREAM: Final = {
    "title": "DreamChanged",
    "type": "object",
    "additionalProperties": False,
    "required": ["dreamId", "agentId", "status"],
    "properties": {"dreamId": _TEXT, "agentId": _TEXT, "status": _TEXT},
}
_TEST: Final = {
    "title": "WebhookTest",
    "type": "object",
    "additionalProperties": False,
    "required": ["webhookId"],
    "properties": {"webhookId": _TEXT},
}
_RECORD: Final = {
    "title": "RecordChanged",
    "type": "object",
    "additionalProperties": False,
    "required": ["noun", "id"],
    "properties": {"noun": _TEXT, "id": _TEXT},
}

PAYLOADS: Final[Mapping[str, tuple[str, Json]]] = {
    WORKSPACE_UPDATED: ("WorkspaceUpdated", BODIES["workspace-updated"]),
    RUN_STARTED: ("RunStarted", _RUN),
    **{type: (f"Run{status.title()}", _RUN) for status, type in RUN_ENDED_BY_STATUS.items()},
    TOOL_CALLED: ("ToolCalled", _TOOL_CALL),
    **{type: (f"Approval{type.partition('.')[2].title()}", _APPROVAL) for type in APPROVALS},
    REVIEW_REQUESTED: ("ReviewRequested", _REVIEW_REQUESTED),
    REVIEW_ANSWERED: ("ReviewAnswered", _REVIEW_ANSWERED),
    DREAM_PROPOSED: ("DreamProposed", _DREAM),
    DREAM_ANSWERED: ("DreamAnswered", _DREAM),
    RECORD_CHANGED: ("RecordChanged", _RECORD),
}
"""Event type → message name and payload schema."""

_STREAM: Final = (
    "Server-sent events: `id` is the cursor to resume from with Last-Event-ID, `event` the type,"
    " `data` the message. Streams require a bearer token or a session; comments are heartbeats."
)
_WEBHOOK: Final = (
    "Posted to the URL of each webhook subscribed to the type, signed as defined by Standard"
    " Webhooks: `webhook-id`, `webhook-timestamp`, `webhook-signature`. Retried with backoff"
    " until the response status is 2xx."
)


def asyncapi_document() -> Json:
    """Build the AsyncAPI 3.0 document of this version."""
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "Carrel",
            "version": VERSION,
            "description": "Events, without content.",
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
    all_types = tuple(PAYLOADS)
    return {
        "workspaceEvents": _channel(
            "/v1/host/workspace/events", "Events of the caller's workspace.", (WORKSPACE_UPDATED,)
        ),
        "tenantEvents": _channel("/v1/events", "Events of the tenant.", all_types),
        "runEvents": {
            **_channel(
                "/v1/runs/{runId}/events", "Events of one run, until it ends.", all_types, "Logged"
            ),
            "parameters": {"runId": {"description": "Id returned by `POST /v1/runs`."}},
        },
        "webhooks": {
            **_channel(None, "Events of the tenant.", (*all_types, WEBHOOK_TEST), "Posted"),
            "description": _WEBHOOK,
        },
    }


def _channel(address: str | None, summary: str, types: tuple[str, ...], suffix: str = "") -> Json:
    names = [_message_name(type) + suffix for type in types]
    return {
        "address": address,
        "summary": summary,
        "description": _STREAM,
        "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
    }


def _message_name(type: str) -> str:
    return "WebhookTest" if type == WEBHOOK_TEST else PAYLOADS[type][0]


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
    test = {"name": WEBHOOK_TEST, "title": "WebhookTestPosted"}
    return _logged_messages() | {
        "WebhookTestPosted": {**test, "payload": _webhook_schema(WEBHOOK_TEST, _TEST)}
    }


def _logged_messages() -> Json:
    return {
        name + suffix: {
            "name": type,
            "title": name + suffix,
            "summary": EVENT_SUMMARIES[type],
            "payload": build_schema(type, payload),
        }
        for suffix, build_schema in (
            ("", _event_schema),
            ("Logged", _run_event_schema),
            ("Posted", _webhook_schema),
        )
        for type, (name, payload) in PAYLOADS.items()
    }


def _event_schema(type: str, payload: Json) -> Json:
    """Event of a workspace or tenant."""
    return _closed_object(
        {
            "eventId": _TEXT,
            "type": {"const": type},
            "payload": payload,
            "timestamp": _TIME,
            "workspace": {"anyOf": [WORKSPACE, {"type": "null"}]},
            "runId": {"type": ["string", "null"], "description": "Run the event belongs to."},
        },
        {},
    )


def _run_event_schema(type: str, payload: Json) -> Json:
    """Event of a run's log."""
    properties = BODIES["run-event"]["properties"]
    return _closed_object({**properties, "type": {"const": type}, "payload": payload}, {})


def _webhook_schema(type: str, payload: Json) -> Json:
    """Webhook body; the event's payload is under `data`."""
    inner = _closed_object(
        {**payload["properties"], "eventId": _TEXT},
        {"workspace": WORKSPACE, "runId": _TEXT, "url": {"type": "string", "format": "uri"}},
    )
    return _closed_object({"type": {"const": type}, "timestamp": _TIME, "data": inner}, {})


def _closed_object(required: Json, optional: Json) -> Json:
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(required),
        "properties": {**optional, **required},
    }
