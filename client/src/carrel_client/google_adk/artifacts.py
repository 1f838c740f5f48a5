"""ADK's artifact service over the files of a workspace."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from google.adk.artifacts import BaseArtifactService
from google.adk.artifacts.artifact_util import (
    is_artifact_ref,
    parse_artifact_uri,
    resolve_artifact_reference,
    validate_artifact_reference_scope,
)
from google.adk.artifacts.base_artifact_service import ArtifactVersion, ensure_part
from google.adk.errors.input_validation_error import InputValidationError
from google.genai import types

from carrel_client.drivers import Result, Steps, await_steps, steps_of
from carrel_client.errors import NotFound, WorkspaceConflict
from carrel_client.file_changes import FileChange, PutFile
from carrel_client.file_models import File, FileRow
from carrel_client.files import Files
from carrel_client.google_adk.artifact_documents import (
    CONTENT,
    DOCUMENT,
    USER_PREFIX,
    ArtifactDocument,
    ArtifactName,
    document_from_part,
    document_from_text,
    filename_of,
    scope_directory,
    version_of,
)
from carrel_client.google_adk.recent_contents import RecentContents

DEFAULT_PREFIX: Final = "adk/artifacts"
_MAX_REFERENCES: Final = 5
_INLINE_BYTES: Final = 2**20
"""Larger contents are uploaded before the commit that makes their version exist."""
_MAX_KNOWN_VERSIONS: Final = 10_000


class CarrelArtifacts(BaseArtifactService):
    """An ADK ``BaseArtifactService`` in the files of a workspace.

    ``files`` is ``client.workspace("ws_…")``, of a Client or an AsyncClient. The artifact ``a.pdf``
    of a session is in ``<prefix>/<app>/<user>/sessions/<session>/a.pdf/<version>/``, that of a user
    in ``<prefix>/<app>/<user>/user/``. Every version stays until the artifact is deleted. A name
    without ``user:`` and without a session is the user's. Contents that were saved or loaded last
    are kept in memory, and fetched again only if they are others now.
    """

    def __init__(self, files: Files[Any], *, prefix: str = DEFAULT_PREFIX) -> None:
        self._files, self._driver = files, files._driver
        self._prefix = prefix.strip("/")
        self._recent = RecentContents()
        # The newest version that was seen, so that a save tries the next one without listing.
        self._newest: OrderedDict[ArtifactName, int] = OrderedDict()

    async def save_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        artifact: types.Part | dict[str, Any],
        session_id: str | None = None,
        custom_metadata: dict[str, Any] | None = None,
    ) -> int:
        """Save a new version; returns its number, from 0. Raises InputValidationError."""
        part = ensure_part(artifact)
        name = ArtifactName.of(app_name, user_id, session_id, filename)
        if is_artifact_ref(part):
            _check_reference(part, app_name, user_id, session_id)
        document, content = document_from_part(part, custom_metadata)
        return await self._run(self._save(name, document, content))

    async def load_artifact(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> types.Part | None:
        name = ArtifactName.of(app_name, user_id, session_id, filename)
        return await self._run(self._load(name, session_id, version))

    async def list_artifact_keys(
        self, *, app_name: str, user_id: str, session_id: str | None = None
    ) -> list[str]:
        """Names of the user's artifacts, which begin with ``user:``, and of the session's."""
        return await self._run(self._list(app_name, user_id, session_id))

    async def delete_artifact(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> None:
        """Delete all versions of an artifact, if there are any."""
        name = ArtifactName.of(app_name, user_id, session_id, filename)
        await self._run(self._delete(name))

    async def list_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[int]:
        name = ArtifactName.of(app_name, user_id, session_id, filename)
        return sorted(await self._run(self._rows(name)))

    async def list_artifact_versions(
        self, *, app_name: str, user_id: str, filename: str, session_id: str | None = None
    ) -> list[ArtifactVersion]:
        name = ArtifactName.of(app_name, user_id, session_id, filename)
        rows: dict[int, FileRow] = await self._run(self._rows(name))
        versions = []
        for version in sorted(rows):
            file = await self._run(self._document_file(name, version))
            versions += [] if file is None else [_to_version(name, version, file)]
        return versions

    async def get_artifact_version(
        self,
        *,
        app_name: str,
        user_id: str,
        filename: str,
        session_id: str | None = None,
        version: int | None = None,
    ) -> ArtifactVersion | None:
        name = ArtifactName.of(app_name, user_id, session_id, filename)
        if version is None:
            version = max(await self._run(self._rows(name)), default=None)
        file = None if version is None else await self._run(self._document_file(name, version))
        return None if version is None or file is None else _to_version(name, version, file)

    def _save(self, name: ArtifactName, document: ArtifactDocument, content: bytes) -> Steps[int]:
        """Put a version under the next number; a number that another writer took is skipped."""
        newest = self._newest.get(name)
        if newest is None:
            newest = max((yield from self._rows(name)), default=-1)
        while True:
            try:
                yield from self._put(self._path(name, newest + 1), document, content)
            except WorkspaceConflict:
                newest = max(newest + 1, *(yield from self._rows(name)))
            else:
                self._remember(name, newest + 1)
                return newest + 1

    def _put(self, path: str, document: ArtifactDocument, content: bytes) -> Steps[None]:
        text = document.to_text()
        changes: list[FileChange] = [_new_file(f"{path}/{DOCUMENT}", text, "application/json")]
        if document.has_content:
            target, kind = f"{path}/{CONTENT}", document.content_type or "application/octet-stream"
            if len(content) > _INLINE_BYTES:
                options = {"content_type": kind, "if_none_match": "*"}
                yield from steps_of(self._files.upload, target, content, **options)
            else:
                changes.append(_new_file(target, content, kind))
        yield from steps_of(self._files.commit, changes)
        for saved in (text.encode(), content):
            self._recent.add(saved)

    def _load(
        self, name: ArtifactName, session: str | None, version: int | None
    ) -> Steps[types.Part | None]:
        for remaining in range(_MAX_REFERENCES, -1, -1):
            directory = name.directory(self._prefix)
            if version is None:
                rows = yield from self._list_files(directory)
                version = max(_documents(directory, rows), default=-1)
                self._remember(name, version)
            else:
                rows = yield from self._list_files(f"{directory}/{version}")
            part = yield from self._load_version(f"{directory}/{version}", rows)
            if part is None or part.file_data is None or not is_artifact_ref(part):
                return part
            target = resolve_artifact_reference(
                file_uri=str(part.file_data.file_uri),
                app_name=name.app,
                user_id=name.user,
                session_id=session,
                remaining_depth=remaining,
            )
            session = target.session_id
            name = ArtifactName.of(target.app_name, target.user_id, session, target.filename)
            version = target.version
        return None

    def _load_version(self, path: str, rows: Sequence[FileRow]) -> Steps[types.Part | None]:
        """The part in a directory, of which rows were listed; None without its document."""
        named, target = f"{path}/{DOCUMENT}", f"{path}/{CONTENT}"
        files = [row for row in rows if row.path in {named, target}]
        contents = self._recent.find_all(files)
        if contents is None:
            contents = yield from self._fetch(path, sum(row.size or 0 for row in files))
        if named not in contents:
            return None
        document = document_from_text(named, contents[named].decode())
        content = contents.get(target, b"")
        if document.has_content and target not in contents:
            content = yield from steps_of(self._files.read_bytes, target)
        return document.to_part(content)

    def _fetch(self, path: str, size: int) -> Steps[Mapping[str, bytes]]:
        """The document of a directory, and its content if both are small."""
        prefix = f"{path}/" if size <= _INLINE_BYTES else f"{path}/{DOCUMENT}"
        rows = yield from steps_of(self._files.list, prefix, content=True)
        contents = {row.path: row.data for row in rows if isinstance(row, File)}
        for content in contents.values():
            self._recent.add(content)
        return contents

    def _document_file(self, name: ArtifactName, version: int) -> Steps[File | None]:
        if version < 0:
            return None
        try:
            file: File = yield from steps_of(
                self._files.get, f"{self._path(name, version)}/{DOCUMENT}"
            )
        except NotFound:
            return None
        return file

    def _rows(self, name: ArtifactName) -> Steps[dict[int, FileRow]]:
        """The documents of an artifact by version."""
        directory = name.directory(self._prefix)
        return _documents(directory, (yield from self._list_files(directory)))

    def _list_files(self, directory: str) -> Steps[Sequence[FileRow]]:
        rows: Sequence[FileRow] = yield from steps_of(self._files.list, f"{directory}/")
        return rows

    def _remember(self, name: ArtifactName, version: int) -> None:
        self._newest.pop(name, None)
        self._newest[name] = version
        while len(self._newest) > _MAX_KNOWN_VERSIONS:
            self._newest.popitem(last=False)

    def _list(self, app: str, user: str, session: str | None) -> Steps[list[str]]:
        names: set[str] = set()
        scopes = {None: USER_PREFIX} | ({} if session is None else {session: ""})
        for scope, prefix in scopes.items():
            directory = scope_directory(self._prefix, app, user, scope)
            rows = yield from steps_of(self._files.list, f"{directory}/")
            filenames = (filename_of(directory, row.path) for row in rows)
            names |= {prefix + name for name in filenames if name is not None}
        return sorted(names)

    def _delete(self, name: ArtifactName) -> Steps[None]:
        self._newest.pop(name, None)
        try:
            directory = name.directory(self._prefix)
            yield from steps_of(self._files.remove_directory, directory, recursive=True)
        except NotFound:
            pass

    def _path(self, name: ArtifactName, version: int) -> str:
        return f"{name.directory(self._prefix)}/{version}"

    async def _run(self, steps: Steps[Result]) -> Result:
        return await await_steps(self._driver, steps)


def _documents(directory: str, rows: Sequence[FileRow]) -> dict[int, FileRow]:
    """The documents of the artifact in a directory, by version."""
    versions = {version_of(directory, row.path): row for row in rows}
    return {version: row for version, row in versions.items() if version is not None}


def _new_file(path: str, content: str | bytes, content_type: str) -> PutFile:
    return PutFile(path=path, content=content, content_type=content_type, if_none_match="*")


def _check_reference(part: types.Part, app: str, user: str, session: str | None) -> None:
    uri = str(part.file_data.file_uri) if part.file_data else ""
    parsed = parse_artifact_uri(uri)
    if parsed is None:
        raise InputValidationError(f"Invalid artifact reference URI: {uri}")
    validate_artifact_reference_scope(
        app_name=app, user_id=user, session_id=session, parsed_uri=parsed
    )


def _to_version(name: ArtifactName, version: int, file: File) -> ArtifactVersion:
    document = document_from_text(file.path, file.content)
    return document.to_version(name, version, file.updated_at.timestamp())
