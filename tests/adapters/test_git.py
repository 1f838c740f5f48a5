"""Git repositories in a directory: one at a time writes, and whoever dies is in nobody's way."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path as File

import pytest
from dulwich.repo import Repo

from carrel.adapters.git import GitDirectory
from carrel.adapters.git.repository import GitRepository
from carrel.core.errors import NotFound, ValidationError
from carrel.core.git.objects import GitObject, Signature, blob, commit, tag, tree
from carrel.core.identifiers import Scope, ScopeKind

pytestmark = pytest.mark.anyio

SCOPE = Scope("acme", ScopeKind.AGENT, "agt_1")
MAIN = "refs/heads/main"
ADA = Signature("ada <ada@carrel.invalid>", 1_800_000_000_000)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def directory(tmp_path: File) -> GitDirectory:
    return GitDirectory(tmp_path / "git")


def chain(length: int, text: str = "text") -> list[list[GitObject]]:
    """The objects of commits that follow one another, each with a file of its own content."""
    found: list[list[GitObject]] = []
    parents: list[str] = []
    for n in range(length):
        file = blob(f"{text} {n}".encode())
        root = tree({"a": file.id}, {})
        made = commit(root.id, parents, ADA, ADA, b"one\n\nCarrel-Revision: %d\n" % (n + 1))
        found.append([file, root, made])
        parents = [made.id]
    return found


async def begun(repository: GitRepository, commits: list[list[GitObject]]) -> None:
    await repository.begin("key")
    await repository.write([one for some in commits for one in some])
    await repository.point({MAIN: commits[-1][-1].id})
    await repository.settle()


async def test_what_was_written_is_read_back(directory: GitDirectory) -> None:
    commits = chain(3)
    async with directory.held(SCOPE) as repository:
        assert await repository.key() is None
        await begun(repository, commits)
        assert await repository.key() == "key"
        assert await repository.refs() == {MAIN: commits[-1][-1].id}
        wanted = [one for some in commits for one in some]
        assert await repository.read([one.id for one in wanted]) == tuple(wanted)
        assert await repository.read(["0" * 40]) == (None,)


async def test_few_objects_and_many_are_kept_alike(directory: GitDirectory) -> None:
    commits = chain(40)
    async with directory.held(SCOPE) as repository:
        await begun(repository, commits)
        tagged = tag(commits[0][-1].id, "x", ADA, b"x\n")
        await repository.write([tagged, tagged])
        await repository.write([tagged])
        await repository.point({"refs/tags/x": tagged.id})
        assert await repository.read([tagged.id]) == (tagged,)
    with Repo(str(directory.place(SCOPE))) as repo:
        assert len(list(repo.object_store)) == len({one.id for c in commits for one in c}) + 1


async def test_what_was_begun_is_seen_by_nobody_until_it_is_settled(
    directory: GitDirectory,
) -> None:
    old, new = chain(1), chain(2, "other")
    async with directory.held(SCOPE) as repository:
        await begun(repository, old)
    async with directory.held(SCOPE) as repository:
        await repository.begin("another")
        await repository.write([one for some in new for one in some])
        await repository.point({MAIN: new[-1][-1].id})
        assert old[-1][-1].id.encode() in await directory.advertised(SCOPE)
    async with directory.held(SCOPE) as repository:
        assert await repository.key() == "key"
        await begun(repository, new)
    assert new[-1][-1].id.encode() in await directory.advertised(SCOPE)
    left = sorted(file.name for file in directory.place(SCOPE).parent.iterdir())
    assert left == ["agt_1.git", "agt_1.lock"]


async def test_locks_of_the_dead_are_in_nobodys_way(directory: GitDirectory) -> None:
    commits = chain(2)
    async with directory.held(SCOPE) as repository:
        await begun(repository, commits[:1])
        place = directory.place(SCOPE)
        (place / f"{MAIN}.lock").touch()
        id = commits[1][-1].id
        (place / "objects" / id[:2]).mkdir(exist_ok=True)
        (place / "objects" / id[:2] / f"{id[2:]}.lock").touch()
        await repository.write(commits[1])
        await repository.point({MAIN: id})
        assert await repository.refs() == {MAIN: id}


async def test_a_damaged_object_is_not_there(directory: GitDirectory) -> None:
    commits = chain(1)
    async with directory.held(SCOPE) as repository:
        await begun(repository, commits)
    id = commits[0][-1].id
    place = directory.place(SCOPE) / "objects" / id[:2] / id[2:]
    place.chmod(0o600)
    place.write_bytes(b"rubbish")
    async with directory.held(SCOPE) as repository:
        assert await repository.read([id]) == (None,)


async def test_of_many_one_at_a_time_holds_it(directory: GitDirectory, tmp_path: File) -> None:
    inside = 0

    async def hold(own: GitDirectory) -> None:
        nonlocal inside
        async with own.held(SCOPE) as repository:
            inside += 1
            assert inside == 1
            await repository.key()
            inside -= 1

    others = [directory, GitDirectory(tmp_path / "git")]
    await asyncio.gather(*(hold(others[n % 2]) for n in range(8)))


async def test_whoever_gives_up_waiting_leaves_no_lock(directory: GitDirectory) -> None:
    async with directory.held(SCOPE):

        async def wait() -> None:
            async with directory.held(SCOPE):
                raise AssertionError("it is held by another")

        waiting = asyncio.create_task(wait())
        for _ in range(5):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with directory.held(SCOPE) as repository:
        assert await repository.key() is None


async def test_a_work_that_is_given_up_is_ended_before_another_begins(
    directory: GitDirectory,
) -> None:
    commits = chain(100)

    async def write() -> None:
        async with directory.held(SCOPE) as repository:
            await begun(repository, commits)

    for turns in range(30):
        writing = asyncio.create_task(write())
        for _ in range(turns):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
    await write()
    async with directory.held(SCOPE) as repository:
        assert await repository.refs() == {MAIN: commits[-1][-1].id}


async def test_nobody_is_told_of_what_is_not_there(directory: GitDirectory) -> None:
    with pytest.raises(NotFound):
        await directory.advertised(SCOPE)
    with pytest.raises(NotFound):
        await directory.packed(SCOPE, b"0000")


def line(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


def asking(id: str) -> bytes:
    capable = "side-band-64k thin-pack ofs-delta agent=x"
    return line(f"want {id} {capable}\n") + b"0000" + line("done\n")


async def poured(directory: GitDirectory, request: bytes) -> bytes:
    return b"".join([chunk async for chunk in await directory.packed(SCOPE, request)])


async def test_what_was_told_can_be_had_though_more_was_written_since(
    directory: GitDirectory,
) -> None:
    commits = chain(2)
    async with directory.held(SCOPE) as repository:
        await begun(repository, commits[:1])
        told = asking(commits[0][-1].id)
        await repository.write(commits[1])
        await repository.point({MAIN: commits[1][-1].id})
    assert b"PACK" in await poured(directory, told)


async def test_files_are_given_only_with_a_commit(directory: GitDirectory) -> None:
    commits = chain(1)
    async with directory.held(SCOPE) as repository:
        await begun(repository, commits)
    for one in commits[0][:2]:
        with pytest.raises(ValidationError):
            await poured(directory, asking(one.id))


@pytest.mark.parametrize(
    "request_",
    [
        b"",
        b"rubbish",
        b"ffff",
        b"0003",
        b"-001",
        b"\xff\xfe\x00\x01",
        line("want " + "0" * 40),
        line("want x side-band-64k thin-pack ofs-delta\n") + b"0000",
        line("have " + "0" * 40),
        asking("0" * 40),
        asking("0" * 40)[:-4],
    ],
)
async def test_whatever_is_asked_is_answered_or_malformed(
    directory: GitDirectory, request_: bytes
) -> None:
    async with directory.held(SCOPE) as repository:
        await begun(repository, chain(1))
    with pytest.raises(ValidationError):
        await poured(directory, request_)


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.adapters.test_git import MAIN, SCOPE, chain
from carrel.adapters.git import GitDirectory

async def main():
    directory = GitDirectory(Path(sys.argv[1]))
    commits = chain(20, sys.argv[2])
    for _ in range(2):
        async with directory.held(SCOPE) as repository:
            await repository.begin("key")
            print("begun", flush=True)
            for some in commits[:5]:
                await repository.write(some)
            await repository.point({MAIN: commits[4][-1].id})
            await repository.settle()
            print("settled", flush=True)
            for some in commits[5:]:
                await repository.write(some)
                await repository.point({MAIN: some[-1].id})
                print("pointed", flush=True)

asyncio.run(main())
"""


def writer(root: File, text: str) -> subprocess.Popen[bytes]:
    ask = [sys.executable, "-c", WRITER, str(root), text]
    return subprocess.Popen(ask, stdout=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize("lines", [1, 2, 3, 10, 18, 19, 25])
def test_whoever_is_killed_leaves_what_can_be_gone_on_with(tmp_path: File, lines: int) -> None:
    root = tmp_path / "git"
    with writer(root, "text") as child:
        assert child.stdout
        for _ in range(lines):
            assert child.stdout.readline()
        os.killpg(child.pid, signal.SIGKILL)

    asyncio.run(asyncio.wait_for(goes_on(GitDirectory(root)), 60))


async def goes_on(directory: GitDirectory) -> None:
    commits = chain(20)
    async with directory.held(SCOPE) as repository:
        if await repository.key() is None:
            await begun(repository, commits[:5])
        tip = (await repository.refs())[MAIN]
        place = [some[-1].id for some in commits].index(tip)
        for some in commits[: place + 1]:
            assert None not in await repository.read([one.id for one in some])
        for some in commits[place + 1 :]:
            await repository.write(some)
            await repository.point({MAIN: some[-1].id})
        assert await repository.refs() == {MAIN: commits[-1][-1].id}


def test_two_processes_take_turns(tmp_path: File) -> None:
    pair = [writer(tmp_path / "git", name) for name in ("one", "two")]
    for child in pair:
        said, _ = child.communicate(timeout=60)
        assert (child.returncode, said.count(b"pointed")) == (0, 30)
