"""Items of a store as JSON files: one path and one document for each."""

from __future__ import annotations

import json
from array import array
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Final

from carrel_client.errors import InvalidResponse
from carrel_client.models import parse_time
from carrel_client.runtimes.path_segments import from_segment, to_segment

SUFFIX: Final = ".json"
CONTENT_TYPE: Final = "application/json"
Vector = Sequence[float]


@dataclass(frozen=True, slots=True)
class ItemDocument:
    """The content of an item's file."""

    value: dict[str, Any]
    created_at: datetime
    vectors: tuple[Vector, ...] = ()

    def to_text(self) -> str:
        fields = {"value": self.value, "createdAt": self.created_at.isoformat()}
        if self.vectors:
            fields["vectors"] = [_encode_vector(vector) for vector in self.vectors]
        return json.dumps(fields, ensure_ascii=False, separators=(",", ":"))


def document_from_text(path: str, text: str) -> ItemDocument:
    """Raises InvalidResponse if the file is not one of the store."""
    try:
        fields: Mapping[str, Any] = json.loads(text)
        return ItemDocument(
            dict(fields["value"]),
            parse_time(fields["createdAt"]),
            tuple(map(_decode_vector, fields.get("vectors", ()))),
        )
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse(f"{path} is not an item of a LangGraph store") from None


def now() -> datetime:
    return datetime.now(timezone.utc)


def namespace_directory(prefix: str, namespace: Sequence[str]) -> str:
    """The directory of a namespace, with a slash at its end."""
    return "".join(f"{segment}/" for segment in (prefix, *map(to_segment, namespace)))


def item_path(prefix: str, namespace: Sequence[str], key: str) -> str:
    return namespace_directory(prefix, namespace) + to_segment(key, suffix=SUFFIX)


def is_item_path(path: str) -> bool:
    return path.endswith(SUFFIX)


def item_location(prefix: str, path: str) -> tuple[tuple[str, ...], str]:
    """Namespace and key of an item's path."""
    *labels, name = path[len(prefix) + 1 :].split("/")
    return tuple(map(from_segment, labels)), from_segment(name, suffix=SUFFIX)


def _encode_vector(vector: Vector) -> str:
    return b64encode(array("f", vector).tobytes()).decode("ascii")


def _decode_vector(text: str) -> Vector:
    vector = array("f")
    vector.frombytes(b64decode(text))
    return vector
