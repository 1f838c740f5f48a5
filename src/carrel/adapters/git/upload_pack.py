"""What git's upload-pack says to those who clone and fetch over HTTP."""

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

from carrel.adapters.git.repository import opened
from carrel.core.errors import ValidationError

_IN_MEMORY: Final = 8 * 2**20
_WANT: Final = re.compile(rb"[0-9a-f]{4}want ([0-9a-f]{40})")
_MOST_WANTS: Final = 1000
_SIGNED: Final = {Commit.type_num, Tag.type_num}


class _SingleRepoBackend(Backend):
    """The one repository that is asked about."""

    def __init__(self, repo: Repo) -> None:
        self._repo = repo

    def open_repository(self, path: str) -> BackendRepo:
        return self._repo


class _UploadPack(UploadPackHandler):
    """Offers no clones that leave files out: git would ask for those one by one, and by no name."""

    def capabilities(self) -> list[bytes]:
        return [one for one in super().capabilities() if one != CAPABILITY_FILTER]

    def set_client_capabilities(self, caps: Iterable[bytes]) -> None:
        """Git names it all the same where its user wanted one; it then takes everything."""
        super().set_client_capabilities([one for one in caps if one != CAPABILITY_FILTER])


def advertise_refs(place: File) -> bytes:
    """The names there are. Raises Missing."""
    answer = BytesIO()
    with closing(opened(place)) as repo:
        protocol = ReceivableProtocol(BytesIO().read, answer.write)
        protocol.write_pkt_line(b"# service=git-upload-pack\n")
        protocol.write_pkt_line(None)
        _upload_pack(repo, protocol, advertise=True).handle()
    return answer.getvalue()


def upload_pack(place: File, request: bytes) -> IO[bytes]:
    """The answer in a file, so that nobody here waits for a slow reader. Raises Missing, Malformed.

    What a request can make the parser stumble over is not ours to know, so it is all Malformed.
    """
    with closing(opened(place)) as repo:
        _offer(repo, request)
        answer: IO[bytes] = SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 - its reader closes it
        protocol = ReceivableProtocol(BytesIO(request).read, answer.write)
        try:
            _upload_pack(repo, protocol, advertise=False).handle()
        except (OSError, MemoryError):
            answer.close()
            raise
        except Exception:
            answer.close()
            raise ValidationError("git's upload-pack does not understand this request") from None
    answer.seek(0)
    return answer


def _upload_pack(repo: Repo, protocol: ReceivableProtocol, *, advertise: bool) -> _UploadPack:
    return _UploadPack(
        _SingleRepoBackend(repo), ["/"], protocol, stateless_rpc=True, advertise_refs=advertise
    )


def _offer(repo: Repo, request: bytes) -> None:
    """Let a request have the commits it names, also where a name has moved on since it was told.

    All that lie here belong to the one history, so nobody is given what they may not have.
    """
    refs = repo.get_refs()
    for n, id in enumerate(_wanted(repo, request)):
        refs[Ref(b"refs/carrel/wanted/%d" % n)] = id
    repo.get_refs = lambda: refs  # type: ignore[method-assign]  # for this one request
    find = repo.find_missing_objects

    def found(wants: Any, walker: Any, *args: Any, **more: Any) -> Any:
        deepen = walker._handle_shallow_request
        walker._handle_shallow_request = lambda asked: _hear_of_shallow(walker, deepen, asked)
        return find(wants, walker, *args, **more)

    repo.find_missing_objects = found  # type: ignore[assignment, method-assign]  # as above


def _hear_of_shallow(walker: Any, deepen: Callable[[Any], None], asked: Any) -> None:
    """Whoever has a clone that ends somewhere tells so, also when it is not to become deeper.

    They are then given all down to there, as if they had nothing: what they have beyond is unknown.
    """
    while True:
        allowed = (COMMAND_DEEPEN, COMMAND_SHALLOW, None)
        command, value = walker.read_proto_line(allowed)
        if command == COMMAND_SHALLOW:
            walker.client_shallow.add(ObjectID(value))
        elif command == COMMAND_DEEPEN:
            walker.unread_proto_line(command, value)
            deepen(asked)
            return
        else:
            walker.shallow.update(walker.client_shallow)
            return


def _wanted(repo: Repo, request: bytes) -> Iterator[ObjectID]:
    for found in dict.fromkeys(_WANT.findall(request)[:_MOST_WANTS]):
        id = ObjectID(found)
        if id in repo.object_store and repo.object_store.get_raw(id)[0] in _SIGNED:
            yield id
