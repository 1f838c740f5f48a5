"""Git repositories in a directory: one writer at a time, and recovery after a crash."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import zlib
from pathlib import Path as File

import pytest
from dulwich.objects import Commit, Tag
from dulwich.repo import Repo

from carrel.adapters.git import GitDirectory
from carrel.adapters.git.repository import GitRepository
from carrel.core.errors import NotFound, ValidationError
from carrel.core.git.log import CommitDraft, GitCommit, TagDraft
from carrel.core.identifiers import Scope, ScopeKind

pytestmark = pytest.mark.anyio

SCOPE = Scope("acme", ScopeKind.AGENT, "agt_1")
MAIN = "refs/heads/main"
ADA = "ada <ada@carrel.invalid>"
NOW = 1_800_000_000_000
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def directory(tmp_path: File) -> GitDirectory:
    return GitDirectory(tmp_path / "git")


def texts(length: int, text: str = "text") -> list[bytes]:
    """The contents of one file in consecutive commits."""
    return [f"{text} {n}".encode() for n in range(length)]


def draft(number: int) -> CommitDraft:
    return CommitDraft(ADA, NOW, b"one\n\nCarrel-Revision: %d\n" % number)


async def add(
    repository: GitRepository, contents: list[bytes], start: int = 0, parent: str | None = None
) -> list[str]:
    """Add a commit for each content; return their ids."""
    blobs = await repository.put_blobs(contents)
    commits = [(draft(n), {"a": blob}) for n, blob in enumerate(blobs, start + 1)]
    return list(await repository.put_commits(commits, parent))


async def begin(repository: GitRepository, contents: list[bytes]) -> list[str]:
    await repository.begin("key")
    ids = await add(repository, contents)
    await repository.update_refs({MAIN: ids[-1]})
    await repository.publish()
    return ids


def test_commits_have_the_same_id_everywhere(directory: GitDirectory) -> None:
    """Ids that were given out must not change with the library that encodes objects."""

    async def commit_ids() -> tuple[str, str]:
        commit = CommitDraft(
            "per_1 <per_1@carrel.invalid>", NOW + 123, b"to see\n\nCarrel-Revision: 3\n"
        )
        async with directory.lock(SCOPE) as repository:
            first = await repository.commit_id(commit, EMPTY_TREE, None)
            return first, await repository.commit_id(commit, EMPTY_TREE, first)

    first, second = asyncio.run(commit_ids())
    assert first == "db16b25b336fa2cec64a5654b9c18732d020f37a"
    assert second != first


async def test_commits_trees_and_blobs_are_read_back(directory: GitDirectory) -> None:
    contents = texts(3)
    async with directory.lock(SCOPE) as repository:
        assert await repository.load_key() is None
        ids = await begin(repository, contents)
        assert await repository.load_key() == "key"
        assert await repository.list_refs() == {MAIN: ids[-1]}
        commits = await repository.find_commits(ids)
        assert [commit and commit.parents for commit in commits] == [(), (ids[0],), (ids[1],)]
        for n, (id, commit, content) in enumerate(zip(ids, commits, contents, strict=True), 1):
            assert commit
            assert (commit.id, commit.author, commit.seconds) == (id, ADA, NOW // 1000)
            assert commit.message.encode() == draft(n).message
            files = await repository.list_files(commit.tree)
            assert await repository.find_blobs([files["a"]]) == (content,)
            assert (
                await repository.commit_id(
                    draft(n), commit.tree, commit.parents[0] if commit.parents else None
                )
                == id
            )
        assert await repository.find_commits(["0" * 40]) == (None,)
        assert await repository.find_blobs([ids[0], "0" * 40]) == (None, None)
        assert await repository.find_tagged(ids[0]) is None


async def test_few_objects_and_many_are_stored_once(directory: GitDirectory) -> None:
    async with directory.lock(SCOPE) as repository:
        ids = await begin(repository, texts(40))
        tags = [await repository.put_tag(TagDraft("x", ADA, NOW, b"x\n"), ids[0]) for _ in "ab"]
        await repository.update_refs({})
        tags.append(await repository.put_tag(TagDraft("x", ADA, NOW, b"x\n"), ids[0]))
        await repository.update_refs({"refs/tags/x": tags[0]})
        assert len(set(tags)) == 1
        assert await repository.find_tagged(tags[0]) == ids[0]
        assert repository.pending_bytes == 0
    with Repo(str(directory.repository_path(SCOPE))) as repo:
        assert len(list(repo.object_store)) == 3 * 40 + 1
        tag = repo[tags[0].encode()]
        assert isinstance(tag, Tag)
        tag.check()
        assert (tag.name, tag.message, tag.tagger) == (b"x", b"x\n", ADA.encode())
        assert tag.object == (Commit, ids[0].encode())
        for id in ids:
            repo[id.encode()].check()


async def test_a_new_repository_is_not_read_before_it_is_published(
    directory: GitDirectory,
) -> None:
    async with directory.lock(SCOPE) as repository:
        [old] = await begin(repository, texts(1))
    async with directory.lock(SCOPE) as repository:
        await repository.begin("another")
        new = await add(repository, texts(2, "other"))
        await repository.update_refs({MAIN: new[-1]})
        assert old.encode() in await directory.advertise_refs(SCOPE)
    async with directory.lock(SCOPE) as repository:
        assert await repository.load_key() == "key"
        assert await begin(repository, texts(2, "other")) == new
    assert new[-1].encode() in await directory.advertise_refs(SCOPE)
    names = sorted(file.name for file in directory.repository_path(SCOPE).parent.iterdir())
    assert names == ["agt_1.git", "agt_1.lock"]


async def test_lock_files_of_dead_processes_are_removed(directory: GitDirectory) -> None:
    async with directory.lock(SCOPE) as repository:
        [first] = await begin(repository, texts(2)[:1])
        [id] = await add(repository, texts(2)[1:], 1, first)
        place = directory.repository_path(SCOPE)
        (place / f"{MAIN}.lock").touch()
        (place / "objects" / id[:2]).mkdir(exist_ok=True)
        (place / "objects" / id[:2] / f"{id[2:]}.lock").touch()
        await repository.update_refs({MAIN: id})
        assert await repository.list_refs() == {MAIN: id}


async def test_directories_are_open_to_the_server_alone(tmp_path: File) -> None:
    before = os.umask(0)
    try:
        git = GitDirectory(tmp_path / "git")
        async with git.lock(SCOPE) as repository:
            await begin(repository, texts(1))
    finally:
        os.umask(before)
    place = git.repository_path(SCOPE)
    modes = [directory.stat().st_mode & 0o777 for directory in (place, *place.parents[:2])]
    assert modes == [0o700] * 3


async def test_a_damaged_object_is_absent(directory: GitDirectory) -> None:
    async with directory.lock(SCOPE) as repository:
        [id] = await begin(repository, texts(1))
    place = directory.repository_path(SCOPE) / "objects" / id[:2] / id[2:]
    place.chmod(0o600)
    for content in (b"rubbish", b"", zlib.compress(b"commit 3\0xyz")):
        place.write_bytes(content)
        async with directory.lock(SCOPE) as repository:
            assert await repository.find_commits([id]) == (None,)


async def test_files_are_listed_as_they_were_put(directory: GitDirectory) -> None:
    async with directory.lock(SCOPE) as repository:
        await repository.begin("key")
        first, second = await repository.put_blobs([b"1", b"2"])
        files = {"a": first, "a-": first, "b/c": second, "b/d/é": first}
        tree = await repository.put_files({**files, "gone": first})
        assert tree != (tree := await repository.put_files({"gone": None}))
        assert await repository.list_files(tree) == files
        await repository.update_refs({})
        assert await repository.list_files(tree) == files
        assert await repository.list_files("0" * 40) == {}


async def test_one_of_many_holds_the_lock_at_a_time(
    directory: GitDirectory, tmp_path: File
) -> None:
    inside = 0

    async def lock_briefly(own: GitDirectory) -> None:
        nonlocal inside
        async with own.lock(SCOPE) as repository:
            inside += 1
            assert inside == 1
            await repository.load_key()
            inside -= 1

    others = [directory, GitDirectory(tmp_path / "git")]
    await asyncio.gather(*(lock_briefly(others[n % 2]) for n in range(8)))


async def test_cancelled_wait_leaves_no_lock(directory: GitDirectory) -> None:
    async with directory.lock(SCOPE):

        async def wait() -> None:
            async with directory.lock(SCOPE):
                raise AssertionError("it is held by another")

        waiting = asyncio.create_task(wait())
        for _ in range(5):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    async with directory.lock(SCOPE) as repository:
        assert await repository.load_key() is None


async def test_cancelled_write_ends_before_another_begins(
    directory: GitDirectory,
) -> None:
    async def write() -> str:
        async with directory.lock(SCOPE) as repository:
            return (await begin(repository, texts(100)))[-1]

    for turns in range(30):
        writing = asyncio.create_task(write())
        for _ in range(turns):
            await asyncio.sleep(0)
        writing.cancel()
        await asyncio.wait([writing])
    tip = await write()
    async with directory.lock(SCOPE) as repository:
        assert await repository.list_refs() == {MAIN: tip}


async def test_absent_repository_has_no_refs(directory: GitDirectory) -> None:
    with pytest.raises(NotFound):
        await directory.advertise_refs(SCOPE)
    with pytest.raises(NotFound):
        await directory.upload_pack(SCOPE, b"0000")


def line(text: str) -> bytes:
    return f"{len(text) + 4:04x}{text}".encode()


def fetch_request(id: str) -> bytes:
    capable = "side-band-64k thin-pack ofs-delta agent=x"
    return line(f"want {id} {capable}\n") + b"0000" + line("done\n")


async def upload_pack(directory: GitDirectory, request: bytes) -> bytes:
    return b"".join([chunk async for chunk in await directory.upload_pack(SCOPE, request)])


async def test_advertised_commit_can_be_fetched_after_later_writes(
    directory: GitDirectory,
) -> None:
    async with directory.lock(SCOPE) as repository:
        [first] = await begin(repository, texts(2)[:1])
        [second] = await add(repository, texts(2)[1:], 1, first)
        await repository.update_refs({MAIN: second})
    assert b"PACK" in await upload_pack(directory, fetch_request(first))


async def test_files_are_served_only_with_a_commit(directory: GitDirectory) -> None:
    async with directory.lock(SCOPE) as repository:
        [commit] = await repository.find_commits(await begin(repository, texts(1)))
        assert commit
        files = await repository.list_files(commit.tree)
    for id in (commit.tree, files["a"]):
        with pytest.raises(ValidationError):
            await upload_pack(directory, fetch_request(id))


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
        fetch_request("0" * 40),
        fetch_request("0" * 40)[:-4],
    ],
)
async def test_every_request_is_answered_or_malformed(
    directory: GitDirectory, request_: bytes
) -> None:
    async with directory.lock(SCOPE) as repository:
        await begin(repository, texts(1))
    with pytest.raises(ValidationError):
        await upload_pack(directory, request_)


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.adapters.test_git import MAIN, SCOPE, add, texts
from carrel.adapters.git import GitDirectory

async def main():
    directory = GitDirectory(Path(sys.argv[1]))
    contents = texts(20, sys.argv[2])
    for _ in range(2):
        async with directory.lock(SCOPE) as repository:
            await repository.begin("key")
            print("begun", flush=True)
            tip = None
            for n in range(5):
                [tip] = await add(repository, contents[n:n + 1], n, tip)
                await repository.update_refs({})
            await repository.update_refs({MAIN: tip})
            await repository.publish()
            print("published", flush=True)
            for n in range(5, 20):
                [tip] = await add(repository, contents[n:n + 1], n, tip)
                await repository.update_refs({MAIN: tip})
                print("pointed", flush=True)

asyncio.run(main())
"""


def start_writer(root: File, text: str) -> subprocess.Popen[bytes]:
    ask = [sys.executable, "-c", WRITER, str(root), text]
    return subprocess.Popen(ask, stdout=subprocess.PIPE, start_new_session=True)


@pytest.mark.parametrize("lines", [1, 2, 3, 10, 18, 19, 25])
def test_killed_writer_leaves_a_usable_repository(tmp_path: File, lines: int) -> None:
    root = tmp_path / "git"
    with start_writer(root, "text") as child:
        assert child.stdout
        for _ in range(lines):
            assert child.stdout.readline()
        os.killpg(child.pid, signal.SIGKILL)

    asyncio.run(asyncio.wait_for(check_continuation(GitDirectory(root)), 60))


async def check_continuation(directory: GitDirectory) -> None:
    contents = texts(20)
    async with directory.lock(SCOPE) as repository:
        if await repository.load_key() is None:
            await begin(repository, contents[:5])
        tip = (await repository.list_refs())[MAIN]
        history = await walk(repository, tip)
        assert [await content_of(repository, commit) for commit in history] == contents[
            : len(history)
        ]
        for n in range(len(history), 20):
            [tip] = await add(repository, contents[n : n + 1], n, tip)
            await repository.update_refs({MAIN: tip})
        assert len(await walk(repository, tip)) == 20
        assert await repository.list_refs() == {MAIN: tip}


async def walk(repository: GitRepository, tip: str) -> list[GitCommit]:
    """The commits up to one, oldest first."""
    [commit] = await repository.find_commits([tip])
    assert commit
    earlier = await walk(repository, commit.parents[0]) if commit.parents else []
    return [*earlier, commit]


async def content_of(repository: GitRepository, commit: GitCommit) -> bytes | None:
    files = await repository.list_files(commit.tree)
    return (await repository.find_blobs([files["a"]]))[0]


def test_two_processes_write_in_turn(tmp_path: File) -> None:
    pair = [start_writer(tmp_path / "git", name) for name in ("one", "two")]
    for child in pair:
        output, _ = child.communicate(timeout=60)
        assert (child.returncode, output.count(b"pointed")) == (0, 30)
