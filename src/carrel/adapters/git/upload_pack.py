"""Serves git upload-pack (clone and fetch) over HTTP with dulwich."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path as File
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Final

from dulwich.objects import Commit, ObjectID, Tag
from dulwich.protocol import (
    CAPABILITY_FILTER,
    COMMAND_DEEPEN,
    COMMAND_SHALLOW,
    ReceivableProtocol,
)
from dulwich.refs import Ref
from dulwich.repo import Repo
from dulwich.server import Backend, BackendRepo, UploadPackHandler

from carrel.adapters.git.repository import open_repository
from carrel.core.errors import ValidationError

_MAX_MEMORY_BYTES: Final = 8 * 2**20
_WANT: Final = re.compile(rb"[0-9a-f]{4}want ([0-9a-f]{40})")
_MAX_WANTS: Final = 1000
_WANTABLE_TYPES: Final = {Commit.type_num, Tag.type_num}


class _SingleRepoBackend(Backend):
    """Backend with a single repository."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    def open_repository(self, path: str) -> BackendRepo:
        return self._repo


class _UploadPackHandler(UploadPackHandler):
    """Upload-pack without partial clones.

    With a filter git would later request single blobs by id, which are not offered.
    """

    def capabilities(self) -> list[bytes]:
        return [
            capability for capability in super().capabilities() if capability != CAPABILITY_FILTER
        ]

    def set_client_capabilities(self, caps: Iterable[bytes]) -> None:
        """Ignore a filter that the client requests; git then takes everything."""
        super().set_client_capabilities(
            [capability for capability in caps if capability != CAPABILITY_FILTER]
        )


def advertise_refs(path: File) -> bytes:
    """Return the ref advertisement. Raises NotFound."""
    output = BytesIO()
    with closing(open_repository(path)) as repo:
        protocol = ReceivableProtocol(BytesIO().read, output.write)
        protocol.write_pkt_line(b"# service=git-upload-pack\n")
        protocol.write_pkt_line(None)
        _new_handler(repo, protocol, advertise=True).handle()
    return output.getvalue()


def upload_pack(path: File, request: bytes) -> IO[bytes]:
    """Write the response to a temporary file, so a slow reader blocks no thread.

    Raises NotFound. Raises ValidationError for any error that dulwich raises on a bad request.
    """
    with closing(open_repository(path)) as repo:
        _allow_wanted_commits(repo, request)
        output: IO[bytes] = SpooledTemporaryFile(_MAX_MEMORY_BYTES)  # noqa: SIM115 - closed by the reader
        protocol = ReceivableProtocol(BytesIO(request).read, output.write)
        try:
            _new_handler(repo, protocol, advertise=False).handle()
        except (OSError, MemoryError):
            output.close()
            raise
        except Exception:
            output.close()
            raise ValidationError("invalid git upload-pack request") from None
    output.seek(0)
    return output


def _new_handler(
    repo: Repo, protocol: ReceivableProtocol, *, advertise: bool
) -> _UploadPackHandler:
    return _UploadPackHandler(
        _SingleRepoBackend(repo), ["/"], protocol, stateless_rpc=True, advertise_refs=advertise
    )


def _allow_wanted_commits(repo: Repo, request: bytes) -> None:
    """Allow wants of commits that no ref points at any more.

    A ref may move between advertisement and request. All objects here belong to one scope's
    history, so this reveals nothing new.
    """
    refs = repo.get_refs()
    for number, id in enumerate(_wanted_commits(repo, request)):
        refs[Ref(b"refs/carrel/wanted/%d" % number)] = id
    repo.get_refs = lambda: refs  # type: ignore[method-assign]  # only for this request
    find_missing = repo.find_missing_objects

    def find_with_shallow(wants: Any, walker: Any, *args: Any, **options: Any) -> Any:
        deepen = walker._handle_shallow_request
        walker._handle_shallow_request = lambda request: _read_shallow_lines(
            walker, deepen, request
        )
        return find_missing(wants, walker, *args, **options)

    repo.find_missing_objects = find_with_shallow  # type: ignore[assignment, method-assign]  # as above


def _read_shallow_lines(walker: Any, deepen: Callable[[Any], None], wants: Any) -> None:
    """Read shallow lines that the client sends without a deepen command.

    A shallow client that does not deepen is then sent everything down to its boundary, since what
    it has beyond is unknown.
    """
    while True:
        allowed = (COMMAND_DEEPEN, COMMAND_SHALLOW, None)
        command, value = walker.read_proto_line(allowed)
        if command == COMMAND_SHALLOW:
            walker.client_shallow.add(ObjectID(value))
        elif command == COMMAND_DEEPEN:
            walker.unread_proto_line(command, value)
            deepen(wants)
            return
        else:
            walker.shallow.update(walker.client_shallow)
            return


def _wanted_commits(repo: Repo, request: bytes) -> Iterator[ObjectID]:
    for match in dict.fromkeys(_WANT.findall(request)[:_MAX_WANTS]):
        id = ObjectID(match)
        if id in repo.object_store and repo.object_store.get_raw(id)[0] in _WANTABLE_TYPES:
            yield id
