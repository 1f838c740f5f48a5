"""An ADK artifact as files: paths, and a document beside the bytes of each version."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Final

from google.adk.artifacts.artifact_util import get_artifact_uri, validate_path_segment
from google.adk.artifacts.base_artifact_service import ArtifactVersion
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from carrel_client.errors import InvalidResponse
from carrel_client.runtimes.key_paths import name_to_segment, segment_to_name

USER_PREFIX: Final = "user:"
DOCUMENT: Final = "artifact.json"
"""File of a version that makes it exist; the bytes are in ``content`` beside it."""
CONTENT: Final = "content"
_VERSION: Final = re.compile(rf"(.+)/([0-9]+)/{re.escape(DOCUMENT)}")
_MEDIA_TYPE: Final = re.compile(r"[a-z0-9.+-]+/[a-z0-9.+-]+")
_EMPTY: Final = types.Part()
_REMOVED: Final = types.Part(inline_data=types.Blob(mime_type="application/octet-stream", data=b""))
"""What ADK saves to remove an artifact when it rewinds a session."""


@dataclass(frozen=True)
class ArtifactName:
    """Names of an artifact; without a session it belongs to the user."""

    app: str
    user: str
    session: str | None
    filename: str

    @classmethod
    def of(cls, app: str, user: str, session: str | None, filename: str) -> ArtifactName:
        """Raises InputValidationError."""
        if filename.startswith(USER_PREFIX):
            session, filename = None, filename.removeprefix(USER_PREFIX)
        if not filename:
            raise InputValidationError("filename must not be empty.")
        return cls(app, user, session, filename)

    def directory(self, prefix: str) -> str:
        """Raises InputValidationError, also for a name that is too long for a path."""
        try:
            segment = name_to_segment(self.filename)
        except ValueError as error:
            raise InputValidationError(str(error)) from None
        return f"{scope_directory(prefix, self.app, self.user, self.session)}/{segment}"

    def uri(self, version: int) -> str:
        return get_artifact_uri(self.app, self.user, self.filename, version, self.session)


def scope_directory(prefix: str, app: str, user: str, session: str | None) -> str:
    """The directory of a session's or a user's artifacts. Raises InputValidationError."""
    names = {"app_name": app, "user_id": user}
    names |= {} if session is None else {"session_id": session}
    for field, name in names.items():
        validate_path_segment(name, field)
    owner = "/".join(map(name_to_segment, (app, user)))
    scope = "user" if session is None else f"sessions/{name_to_segment(session)}"
    return f"{prefix}/{owner}/{scope}"


def version_of(directory: str, path: str) -> int | None:
    """The version whose document has a path, if it is of the artifact in the directory."""
    match = _VERSION.fullmatch(path)
    return int(match[2]) if match and match[1] == directory else None


def filename_of(directory: str, path: str) -> str | None:
    """The name of the artifact whose document has a path in the directory of a scope."""
    match = _VERSION.fullmatch(path)
    if match is None or not match[1].startswith(f"{directory}/"):
        return None
    return segment_to_name(match[1].removeprefix(f"{directory}/"))


@dataclass(frozen=True)
class ArtifactDocument:
    """A version without its bytes."""

    part: dict[str, Any]
    """JSON of the part; of inline data without the bytes, of text without the text."""
    mime_type: str | None
    metadata: dict[str, Any]

    def to_text(self) -> str:
        fields = {
            "part": self.part,
            "mimeType": self.mime_type,
            "customMetadata": self.metadata,
        }
        return json.dumps(fields, ensure_ascii=False)

    @property
    def has_content(self) -> bool:
        return not self.part.keys() & {"fileData", "file_data"}

    @property
    def content_type(self) -> str | None:
        """Type for the file of the bytes, where it is a plain media type."""
        essence = (self.mime_type or "").split(";")[0].strip().lower()
        return essence if _MEDIA_TYPE.fullmatch(essence) else None

    def to_part(self, content: bytes) -> types.Part | None:
        """The part with its bytes; None if it removed the artifact."""
        part = types.Part.model_validate(self.part)
        if part.inline_data is not None:
            part.inline_data.data = content
        elif part.file_data is None:
            part.text = content.decode()
        return None if part in (_EMPTY, _REMOVED) else part

    def to_version(self, name: ArtifactName, version: int, created_at: float) -> ArtifactVersion:
        return ArtifactVersion(
            version=version,
            canonical_uri=name.uri(version),
            custom_metadata=self.metadata,
            create_time=created_at,
            mime_type=self.mime_type,
        )


def document_from_text(path: str, text: str) -> ArtifactDocument:
    """Raises InvalidResponse if the file is not a version's document."""
    try:
        fields = json.loads(text)
        return ArtifactDocument(fields["part"], fields["mimeType"], fields["customMetadata"])
    except (KeyError, TypeError, ValueError):
        raise InvalidResponse(f"{path} is not the document of an artifact") from None


def document_from_part(
    part: types.Part, metadata: dict[str, Any] | None
) -> tuple[ArtifactDocument, bytes]:
    """The document of a part, and its bytes. Raises InputValidationError."""
    without: dict[str, Any] = {}
    if part.inline_data is not None:
        content, mime_type = part.inline_data.data or b"", part.inline_data.mime_type
        without = {"inline_data": {"data"}}
    elif part.text is not None:
        content, mime_type, without = part.text.encode(), "text/plain", {"text": True}
    elif part.file_data is not None:
        content, mime_type = b"", part.file_data.mime_type
    else:
        raise InputValidationError("An artifact is inline data, a text or a reference to a file.")
    fields = part.model_dump(mode="json", exclude_none=True, by_alias=True, exclude=without)
    return ArtifactDocument(fields, mime_type, dict(metadata or {})), content
