"""Results of remote machines are not trusted."""

from __future__ import annotations

import asyncio
import io
import tarfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.adapters.sandbox.remote.bounded_output import TRUNCATION_MARK, BoundedOutput
from carrel.adapters.sandbox.remote.cleanup import cancel_promptly
from carrel.adapters.sandbox.remote.manifest import (
    InvalidManifest,
    RemoteManifest,
    find_changes,
    parse_manifest,
)
from carrel.adapters.sandbox.remote.tar_transfer import (
    ExpectedFile,
    Owner,
    TransferDamaged,
    pack_tar,
    unpack_tar,
)
from carrel.core.identifiers import Path, digest
from carrel.core.store.blob import Blob
from carrel.ports.sandbox import FileKind, InputFile, ResourceLimits

HEX = "0" * 64


def entry(
    name: bytes, kind: bytes = b"f", mode: bytes = b"644", size: int = 1, to: bytes = b""
) -> bytes:
    return b"\0".join([kind, mode, b"%d" % size, name, to, b""])


def listing(*entries: bytes, hashed: tuple[bytes, ...] = ()) -> bytes:
    hashes = b"".join(HEX.encode() + b"  ./" + name + b"\0" for name in hashed)
    return b"".join(entries) + b"hashes\0" + hashes + b"end\0"


@pytest.mark.parametrize(
    "name", [b"/etc/passwd", b"../up", b"a/../b", b"a//b", b"", b".", b"x\\y", b"x" * 300]
)
def test_names_that_lead_out_are_dropped(name: bytes) -> None:
    found_there = parse_manifest(listing(entry(name), hashed=(name,)))

    assert found_there.files == {}
    assert len(found_there.notes) == 1


def test_equal_looking_names_are_kept_once() -> None:
    names = ("ü".encode(), "u\u0308".encode())

    found_there = parse_manifest(listing(*map(entry, names), hashed=names))

    assert [(path.text, file.name) for path, file in found_there.files.items()] == [("ü", names[0])]
    assert len(found_there.notes) == 1


@given(st.binary(max_size=200), st.integers(0, 200))
def test_tampered_listing_is_parsed_or_refused(noise: bytes, at: int) -> None:
    complete = listing(entry(b"a"), entry(b"b", b"l", to=b"a"), hashed=(b"a",))
    try:
        found_there = parse_manifest(complete[:at] + noise + complete[at:])
    except InvalidManifest:
        return
    for path, file in found_there.files.items():
        assert ".." not in path.text.split("/") and not path.text.startswith("/")
        assert file.size >= 0


@given(st.integers(0, 60))
def test_truncated_listing_is_refused(length: int) -> None:
    complete = listing(entry(b"a"), hashed=(b"a",))
    with pytest.raises(InvalidManifest):
        parse_manifest(complete[: min(length, len(complete) - 1)])


def test_too_many_changes_are_all_discarded() -> None:
    names = tuple(b"f%d" % number for number in range(5000))
    now = parse_manifest(listing(*map(entry, names), hashed=names))
    before = {Path("gone"): InputFile(FileKind.FILE, Blob(digest(b""), 0))}

    assert len(find_changes(now, {}, ResourceLimits()).changed) == 5000
    with pytest.raises(InvalidManifest, match="5001"):
        find_changes(now, before, ResourceLimits())


def test_false_size_is_refused() -> None:
    huge = parse_manifest(listing(entry(b"a", size=2**40), hashed=(b"a",)))
    with pytest.raises(InvalidManifest):
        find_changes(huge, {}, ResourceLimits())
    with pytest.raises(InvalidManifest):
        parse_manifest(listing(entry(b"a").replace(b"1", b"9" * 40), hashed=(b"a",)))


def test_file_replaced_by_a_directory_is_both_deleted_and_added() -> None:
    before = {Path("a"): InputFile(FileKind.FILE, Blob(digest(b""), 0))}
    now = parse_manifest(listing(entry(b"a/b"), hashed=(b"a/b",)))

    changes = find_changes(now, before, ResourceLimits())

    assert (set(changes.changed), set(changes.deleted)) == ({Path("a/b")}, {Path("a")})
    assert find_changes(RemoteManifest({}), {}, ResourceLimits()).deleted == frozenset()


def archive(*members: tuple[tarfile.TarInfo, bytes]) -> io.BytesIO:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for head, content in members:
            head.size = len(content)
            tar.addfile(head, io.BytesIO(content))
    return file


def expected(content: bytes) -> ExpectedFile:
    return ExpectedFile(b"a", len(content), digest(content).removeprefix("sha256:"))


def test_only_requested_files_are_taken_from_an_archive() -> None:
    head, other = tarfile.TarInfo("./a"), tarfile.TarInfo("../../etc/passwd")
    file = archive((other, b"evil"), (head, b"good"))

    [(path, offset)] = unpack_tar(file, {Path("a"): expected(b"good")}).items()

    file.seek(offset)
    assert (path, file.read(4)) == (Path("a"), b"good")


@pytest.mark.parametrize("content", [b"evil", b"goo", b""])
def test_content_that_differs_from_the_listing_is_not_taken(content: bytes) -> None:
    with pytest.raises(TransferDamaged):
        unpack_tar(archive((tarfile.TarInfo("a"), content)), {Path("a"): expected(b"good")})


def test_link_in_place_of_a_file_is_not_followed() -> None:
    link = tarfile.TarInfo("a")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    with pytest.raises(TransferDamaged):
        unpack_tar(archive((link, b"")), {Path("a"): expected(b"")})
    with pytest.raises(TransferDamaged):
        unpack_tar(io.BytesIO(b"no archive" * 100), {Path("a"): expected(b"")})


def test_files_are_sent_with_their_kinds_and_modes() -> None:
    contents = {digest(text): text for text in (b"plain", b"run", b"plain/x")}
    blobs = {text: Blob(digest(text), len(text)) for text in contents.values()}
    files = {
        Path("d/plain"): InputFile(FileKind.FILE, blobs[b"plain"]),
        Path("run"): InputFile(FileKind.EXECUTABLE, blobs[b"run"]),
        Path("link"): InputFile(FileKind.LINK, blobs[b"plain/x"]),
    }

    with tarfile.open(fileobj=io.BytesIO(pack_tar(files, contents, {}, Owner(7, 8)))) as tar:
        members = {member.name: member for member in tar}

    assert members["work/d/plain"].mode == 0o644
    assert members["work/run"].mode == 0o755
    assert members["work/link"].issym() and members["work/link"].linkname == "plain/x"
    assert members["work/d"].isdir()
    assert {(member.uid, member.gid) for member in members.values()} == {(7, 8)}


@given(st.lists(st.text("aäあ🎈\n", max_size=20).map(str.encode), max_size=4), st.integers(1, 64))
def test_bounded_output_stays_within_its_limit_and_ends_between_characters(
    parts: list[bytes], limit: int
) -> None:
    output = BoundedOutput(limit)
    for part in parts:
        output(part)
    complete = b"".join(parts)

    assert len(output.marked_content) <= limit
    if len(complete) <= limit:
        assert output.marked_content == complete
    elif limit >= len(TRUNCATION_MARK):
        assert output.marked_content.endswith(TRUNCATION_MARK)
        assert complete.startswith(output.marked_content.removesuffix(TRUNCATION_MARK))
        output.marked_content.removesuffix(TRUNCATION_MARK).decode()


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_cancellation_succeeds_even_if_a_library_swallows_it() -> None:
    begun, over = asyncio.Event(), asyncio.Event()

    async def deaf() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await over.wait()

    task = asyncio.create_task(cancel_promptly(deaf()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(asyncio.shield(task), 10)
    over.set()
