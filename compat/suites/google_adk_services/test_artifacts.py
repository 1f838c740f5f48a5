"""What ADK documents of an artifact service."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from google.adk.artifacts import BaseArtifactService
from google.adk.artifacts.artifact_util import get_artifact_uri
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

OWNER = {"app_name": "app", "user_id": "luis"}
SCOPE = {**OWNER, "session_id": "chat"}
PDF = types.Part.from_bytes(data=b"%PDF\0\xff", mime_type="application/pdf")


def text(content: str) -> types.Part:
    return types.Part(text=content)


async def save(artifacts: BaseArtifactService, name: str, part: Any, **options: Any) -> int:
    return await artifacts.save_artifact(filename=name, artifact=part, **{**SCOPE, **options})


async def load(artifacts: BaseArtifactService, name: str, **options: Any) -> types.Part | None:
    return await artifacts.load_artifact(filename=name, **{**SCOPE, **options})


async def test_missing_artifact_is_none(artifacts: BaseArtifactService) -> None:
    assert await load(artifacts, "a.pdf") is None
    assert await load(artifacts, "a.pdf", version=3) is None
    assert await artifacts.list_versions(filename="a.pdf", **SCOPE) == []
    assert await artifacts.list_artifact_versions(filename="a.pdf", **SCOPE) == []
    assert await artifacts.get_artifact_version(filename="a.pdf", **SCOPE) is None
    assert await artifacts.list_artifact_keys(**SCOPE) == []
    await artifacts.delete_artifact(filename="a.pdf", **SCOPE)


async def test_versions_are_numbered_from_zero(artifacts: BaseArtifactService) -> None:
    for number in range(3):
        assert await save(artifacts, "a.txt", text(f"text {number}")) == number
    assert await artifacts.list_versions(filename="a.txt", **SCOPE) == [0, 1, 2]
    assert await load(artifacts, "a.txt") == text("text 2")
    for number in range(3):
        assert await load(artifacts, "a.txt", version=number) == text(f"text {number}")
    assert await load(artifacts, "a.txt", version=3) is None


@pytest.mark.parametrize(
    "part",
    [
        PDF,
        types.Part(inline_data=types.Blob(data=b"", mime_type="text/plain")),
        types.Part(inline_data=types.Blob(data=b"plain", mime_type="text/plain; charset=utf-8")),
        types.Part(inline_data=types.Blob(data=b"x", mime_type="image/png", display_name="Ä.png")),
        text("Grüße\r\n"),
        types.Part(file_data=types.FileData(file_uri="gs://a/b", mime_type="video/mp4")),
    ],
    ids=["bytes", "empty", "parameters", "display name", "text", "reference to a file"],
)
async def test_part_comes_back(artifacts: BaseArtifactService, part: types.Part) -> None:
    await save(artifacts, "a", part)
    assert await load(artifacts, "a") == part


async def test_large_content_comes_back(artifacts: BaseArtifactService) -> None:
    part = types.Part.from_bytes(data=bytes(range(256)) * 2**14, mime_type="image/png")
    assert await save(artifacts, "a.png", part) == 0
    assert await save(artifacts, "a.png", part) == 1
    assert await load(artifacts, "a.png") == part


async def test_part_may_be_a_dictionary(artifacts: BaseArtifactService) -> None:
    await save(artifacts, "a", {"inlineData": {"data": "JVBERg==", "mimeType": "application/pdf"}})
    loaded = await load(artifacts, "a")
    assert loaded and loaded.inline_data and loaded.inline_data.data == b"%PDF"


async def test_empty_part_is_refused(artifacts: BaseArtifactService) -> None:
    with pytest.raises(InputValidationError):
        await save(artifacts, "a", types.Part())
    assert await load(artifacts, "a") is None


async def test_metadata_of_versions(artifacts: BaseArtifactService) -> None:
    started = time.time() - 5
    await save(artifacts, "a.pdf", PDF, custom_metadata={"pages": 2, "by": {"name": "Luis"}})
    await save(artifacts, "a.pdf", text("now a text"))
    first, second = await artifacts.list_artifact_versions(filename="a.pdf", **SCOPE)
    assert (first.version, first.mime_type) == (0, "application/pdf")
    assert first.custom_metadata == {"pages": 2, "by": {"name": "Luis"}}
    assert (second.version, second.mime_type, second.custom_metadata) == (1, "text/plain", {})
    assert first.canonical_uri != second.canonical_uri
    assert started < first.create_time < time.time() + 5
    get = artifacts.get_artifact_version
    assert await get(filename="a.pdf", **SCOPE) == second
    assert await get(filename="a.pdf", version=0, **SCOPE) == first
    assert await get(filename="a.pdf", version=2, **SCOPE) is None


async def test_sessions_users_and_apps_are_separate(artifacts: BaseArtifactService) -> None:
    await save(artifacts, "a", text("here"))
    for other in ({"session_id": "other"}, {"user_id": "ana"}, {"app_name": "other"}):
        assert await load(artifacts, "a", **other) is None
        assert await artifacts.list_artifact_keys(**{**SCOPE, **other}) == []


async def test_artifacts_of_the_user_are_in_every_session(artifacts: BaseArtifactService) -> None:
    await save(artifacts, "user:photo.png", text("photo"))
    await save(artifacts, "a.txt", text("a"))
    assert await load(artifacts, "user:photo.png", session_id="other") == text("photo")
    assert await artifacts.list_artifact_keys(**SCOPE) == ["a.txt", "user:photo.png"]
    other = {**SCOPE, "session_id": "other"}
    assert await artifacts.list_artifact_keys(**other) == ["user:photo.png"]
    assert await artifacts.list_artifact_keys(**OWNER) == ["user:photo.png"]
    assert await artifacts.list_versions(filename="user:photo.png", **OWNER) == [0]


@pytest.mark.parametrize(
    "name",
    ["doc", "doc/nested/a.txt", "..", "a b%2F.txt", "0", "artifact.json", "Ä/ö.md", "C:\\a.txt"],
)
async def test_any_name_is_a_name(artifacts: BaseArtifactService, name: str) -> None:
    await save(artifacts, "doc", text("beside"))
    await save(artifacts, name, text("content"))
    assert await load(artifacts, name) == text("content")
    assert name in await artifacts.list_artifact_keys(**SCOPE)
    await artifacts.delete_artifact(filename=name, **SCOPE)
    assert await load(artifacts, name) is None
    assert await load(artifacts, "doc") == (None if name == "doc" else text("beside"))


async def test_deleted_artifact_begins_again_at_zero(artifacts: BaseArtifactService) -> None:
    await save(artifacts, "a", text("1"))
    await save(artifacts, "a", text("2"))
    await artifacts.delete_artifact(filename="a", **SCOPE)
    assert await load(artifacts, "a") is None
    assert await artifacts.list_versions(filename="a", **SCOPE) == []
    assert await artifacts.list_artifact_keys(**SCOPE) == []
    assert await save(artifacts, "a", text("3")) == 0


@pytest.mark.parametrize("field", ["app_name", "user_id", "session_id"])
@pytest.mark.parametrize("value", ["", "/root", "../up", "a/../b", "a\0b"])
async def test_names_that_leave_their_scope_are_refused(
    artifacts: BaseArtifactService, field: str, value: str
) -> None:
    with pytest.raises(InputValidationError):
        await save(artifacts, "a", text("a"), **{field: value})


async def test_reference_is_followed(artifacts: BaseArtifactService) -> None:
    await save(artifacts, "a.pdf", PDF)
    await save(artifacts, "a.pdf", text("newer"))
    uri = get_artifact_uri("app", "luis", "a.pdf", 0, "chat")
    await save(artifacts, "alias", types.Part(file_data=types.FileData(file_uri=uri)))
    assert await load(artifacts, "alias") == PDF


@pytest.mark.parametrize(
    "uri",
    [
        get_artifact_uri("other", "luis", "a", 0, "chat"),
        get_artifact_uri("app", "ana", "a", 0, "chat"),
        get_artifact_uri("app", "luis", "a", 0, "other"),
        "artifact://nonsense",
    ],
)
async def test_reference_out_of_scope_is_refused(artifacts: BaseArtifactService, uri: str) -> None:
    with pytest.raises(InputValidationError):
        await save(artifacts, "alias", types.Part(file_data=types.FileData(file_uri=uri)))


async def test_reference_to_itself_is_refused(artifacts: BaseArtifactService) -> None:
    uri = get_artifact_uri("app", "luis", "alias", 0, "chat")
    await save(artifacts, "alias", types.Part(file_data=types.FileData(file_uri=uri)))
    with pytest.raises(InputValidationError):
        await load(artifacts, "alias")


async def test_rewound_artifact_is_absent(artifacts: BaseArtifactService) -> None:
    await save(artifacts, "a", text("a"))
    removed = types.Blob(mime_type="application/octet-stream", data=b"")
    assert await save(artifacts, "a", types.Part(inline_data=removed)) == 1
    assert await load(artifacts, "a") is None
    assert await load(artifacts, "a", version=0) == text("a")


async def test_concurrent_saves_all_get_a_version(artifacts: BaseArtifactService) -> None:
    saves = (save(artifacts, "a", text(f"text {number}")) for number in range(8))
    assert sorted(await asyncio.gather(*saves)) == list(range(8))
    loaded = [await load(artifacts, "a", version=number) for number in range(8)]
    assert {part.text for part in loaded if part} == {f"text {number}" for number in range(8)}


async def test_versions_of_other_processes_are_skipped(
    artifacts: BaseArtifactService, elsewhere: BaseArtifactService
) -> None:
    assert await save(artifacts, "a", text("mine")) == 0
    for number in (1, 2):
        assert await save(elsewhere, "a", text(f"theirs {number}")) == number
    assert await load(artifacts, "a") == text("theirs 2")
    assert await save(elsewhere, "a", text("theirs 3")) == 3
    assert await save(artifacts, "a", text("mine again")) == 4
    assert await load(elsewhere, "a") == text("mine again")


async def test_artifact_replaced_by_another_process_is_the_new_one(
    artifacts: BaseArtifactService, elsewhere: BaseArtifactService
) -> None:
    await save(artifacts, "a", text("old"))
    assert await load(artifacts, "a") == text("old")
    await elsewhere.delete_artifact(filename="a", **SCOPE)
    assert await load(artifacts, "a") is None
    await save(elsewhere, "a", PDF)
    assert await load(artifacts, "a") == PDF
    assert await load(artifacts, "a", version=0) == PDF
    assert await save(artifacts, "a", text("next")) == 1
