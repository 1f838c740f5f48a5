"""Clones of an agent's history from a running server: complete, valid and readable."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import threading
from contextlib import suppress
from pathlib import Path as File

import httpx
import pytest
from dulwich import porcelain
from dulwich.errors import GitProtocolError
from dulwich.repo import Repo
from tests.support.server_process import PLAIN, TOKEN, ServerProcess, carrel, serving

VERSIONS = 300
HEAD = {"Authorization": f"Bearer {TOKEN}"}
NEW = {"slug": "marco", "name": "Marco", "config": {"workspaceGit": {"enabled": True}}}


async def agent_with_history(live: ServerProcess, versions: int) -> None:
    """An agent whose three files are written many times."""
    async with live.http() as owner:
        (await owner.post("/v1/agents", json=NEW)).raise_for_status()

        async def writer(name: str, times: int) -> None:
            for n in range(times):
                body = {"content": f"{name} {n}\n" * 20}
                put = await owner.put(f"/v1/agents/marco/files/notes/{name}.md", json=body)
                put.raise_for_status()

        await asyncio.gather(*(writer(f"n{n}", versions // 4) for n in range(4)))


def address(live: ServerProcess) -> str:
    return live.url.replace("://", f"://x:{TOKEN}@") + "/git/marco.git"


def clone_with_dulwich(live: ServerProcess, target: File) -> list[str]:
    """The ids of all commits, newest first, cloned by a library instead of git."""
    with porcelain.clone(address(live), str(target), errstream=porcelain.NoneStream()) as repo:
        return _commits(repo)


def _commits(repo: Repo) -> list[str]:
    for id in repo.object_store:
        repo.object_store[id].check()
    return [entry.commit.id.decode() for entry in repo.get_walker()]


def git(*arguments: str) -> str:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(
        ["git", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def clone_with_git(live: ServerProcess, target: File, ids: list[str]) -> None:
    """The same by git itself, in every protocol version, if git is installed."""
    for version in ("0", "1", "2"):
        place = str(target / f"v{version}")
        git("-c", f"protocol.version={version}", "clone", "-q", address(live), place)
        assert git("-C", place, "rev-list", "HEAD").split() == ids
    assert git("-C", place, "fsck", "--full", "--strict") == ""
    entry = git("-C", place, "log", "-1", "--format=%an|%at|%s|%(trailers:key=Carrel-Revision)")
    author, timestamp, reason, revision = entry.strip().split("|")
    assert author.startswith("per_")
    assert int(timestamp) > 0
    assert reason.startswith("put notes/n")
    assert revision == f"Carrel-Revision: {VERSIONS}"
    shallow = str(target / "shallow")
    git("clone", "-q", "--depth", "1", address(live), shallow)
    assert git("-C", shallow, "rev-list", "HEAD").split() == ids[:1]
    git("-C", shallow, "fetch", "-q", "--unshallow")
    assert git("-C", shallow, "rev-list", "HEAD").split() == ids
    git("clone", "-q", "--filter=blob:none", address(live), str(target / "partial"))


def test_clone_of_hundreds_of_versions_is_complete_and_rebuilt_with_the_same_ids(
    tmp_path: File,
) -> None:
    data = tmp_path / "data"
    with serving(data, workers=2) as live:
        asyncio.run(agent_with_history(live, VERSIONS))
        ids = clone_with_dulwich(live, tmp_path / "one")
        assert len(ids) == len(set(ids)) == VERSIONS
        if shutil.which("git"):
            clone_with_git(live, tmp_path, ids)
        with pytest.raises((GitProtocolError, porcelain.Error)):
            porcelain.push(str(tmp_path / "one"), address(live), "refs/heads/main:refs/heads/x")

    report = json.loads(carrel(data, "git", "rebuild", "marco", "--json").stdout)
    assert report == {"ok": True, "commits": VERSIONS, "revision": VERSIONS, "oid": ids[0]}
    with serving(data) as live:
        assert clone_with_dulwich(live, tmp_path / "two") == ids


def test_clone_during_writes_is_consistent(
    tmp_path: File,
) -> None:
    with serving(tmp_path / "data", workers=2) as live:
        asyncio.run(agent_with_history(live, 40))

        async def scenario() -> list[list[str]]:
            async with live.http() as owner:
                writing = asyncio.create_task(_write(owner))
                histories = [
                    await asyncio.to_thread(clone_with_dulwich, live, tmp_path / f"{n}")
                    for n in range(5)
                ]
                writing.cancel()
                await asyncio.wait([writing])
                return histories

        clones = asyncio.run(scenario())
        last = clone_with_dulwich(live, tmp_path / "last")
    for ids in clones:
        assert ids == last[-len(ids) :]


def test_shallow_clone_is_updated_by_fetch(tmp_path: File) -> None:
    if not shutil.which("git"):
        return
    with (
        serving(tmp_path / "data") as live,
        httpx.Client(base_url=live.url, headers=HEAD, verify=PLAIN) as owner,
    ):
        owner.post("/v1/agents", json=NEW).raise_for_status()
        for text in ("first", "second", "third"):
            _say(owner, text)
            body = {"arguments": {"note": text}}
            owner.post("/v1/agents/marco/tools/memory_checkpoint", json=body).raise_for_status()
        places = [str(tmp_path / f"{n}") for n in range(3)]
        for n, place in enumerate(places):
            git("-c", f"protocol.version={n}", "clone", "-q", "--depth", "2", address(live), place)
        for text in ("first", "fourth"):
            _say(owner, text)
            for n, place in enumerate(places):
                git("-C", place, "-c", f"protocol.version={n}", "pull", "-q", "--ff-only")
                assert git("-C", place, "show", "HEAD:notes/n.md") == text
        for place in places:
            assert len(git("-C", place, "rev-list", "HEAD").split()) == 4
            git("-C", place, "fetch", "-q", "--tags")
            assert len(git("-C", place, "tag").split()) == 3
            git("-C", place, "fsck", "--full", "--strict")
            git("-C", place, "fetch", "-q", "--unshallow")
            assert len(git("-C", place, "rev-list", "HEAD").split()) == 5


def _say(owner: httpx.Client, text: str) -> None:
    owner.put("/v1/agents/marco/files/notes/n.md", json={"content": text}).raise_for_status()


async def _write(owner: httpx.AsyncClient) -> None:
    n = 0
    while True:
        n += 1
        await owner.put("/v1/agents/marco/files/MEMORY.md", json={"content": f"{n}"})


def test_server_killed_during_a_clone_serves_the_same_ids_after_restart(tmp_path: File) -> None:
    data = tmp_path / "data"
    with serving(data) as live:
        asyncio.run(agent_with_history(live, 400))
        context = threading.Thread(target=_ask, args=(live,))
        context.start()
        while not list((data / "git").glob("*/*.new")) and context.is_alive():
            pass
        live.kill()
        context.join()
    with serving(data) as live:
        ids = clone_with_dulwich(live, tmp_path / "one")
    assert len(ids) == 400
    assert json.loads(carrel(data, "git", "rebuild", "marco", "--json").stdout)["oid"] == ids[0]


def _ask(live: ServerProcess) -> None:
    with suppress(httpx.HTTPError):
        httpx.get(f"{address(live)}/info/refs?service=git-upload-pack", timeout=60, verify=PLAIN)


def test_git_log_prints_author_time_and_reason(tmp_path: File) -> None:
    with serving(tmp_path) as live:
        asyncio.run(agent_with_history(live, 4))
    output = carrel(tmp_path, "git", "log", "marco", "--limit", "3", "--diff")
    assert output.returncode == 0, output.stderr
    lines = output.stdout.split("\n\n")[0].splitlines()
    assert len(lines) == 3
    assert all("Z  per_" in line and "  put notes/n" in line for line in lines)
    assert "+++ b/notes/n" in output.stdout
    report = json.loads(carrel(tmp_path, "git", "log", "marco", "--json").stdout)
    assert len(report["commits"]) == 4
    assert report["diff"] is None
    rebuilt = carrel(tmp_path, "git", "rebuild", "marco")
    assert "making commits: 4 of 4" in rebuilt.stderr
    refused = carrel(tmp_path, "git", "rebuild", "unknown")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "no such agent: unknown" in refused.stderr
    assert carrel(tmp_path, "git", "log", "marco", "--tenant", "other").returncode == 1
