"""What the standard tests do not ask: conditions, batches, and files of an agent."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from agent_fixture import TOKEN, URL, create_agent

from carrel_client import AsyncClient, Client
from carrel_client.deepagents import CarrelBackend, CarrelSandbox


@pytest.fixture
def client() -> Client:
    return Client(URL, TOKEN)


@pytest.fixture
def backend(client: Client) -> CarrelBackend:
    return CarrelBackend(client.workspace(client.workspaces.create("files").id))


def test_concurrent_edits_of_different_places_all_land(backend: CarrelBackend) -> None:
    words = [f"word{number}" for number in range(12)]
    backend.write("/a.txt", "\n".join(words))
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda word: backend.edit("/a.txt", f"{word}\n", "x\n"), words))
    assert [result.error for result in results[:-1]] == [None] * 11
    read = backend.read("/a.txt").file_data
    assert read is not None
    assert read["content"].split() == ["x"] * 11 + ["word11"]


def test_files_that_are_refused_do_not_stop_the_others(backend: CarrelBackend) -> None:
    contents = [("/a", b"1"), ("/a/b", b"2"), ("c", b"3"), ("/a", b"4"), ("/d", b"x" * 300_000)]
    errors = [response.error for response in backend.upload_files(contents)]
    assert errors[2] == "invalid_path"
    assert [errors[index] for index in (0, 3, 4)] == [None, None, None]
    assert errors[1] is not None
    downloads = backend.download_files(["/a", "/d", "/missing"])
    assert downloads[0].content == b"4"
    assert (len(downloads[1].content or b""), downloads[2].error) == (300_000, "file_not_found")


def test_directories_are_listed_deleted_and_not_read(backend: CarrelBackend) -> None:
    backend.upload_files([("/x/a.md", b"1"), ("/x/y/b.md", b"2"), ("/c.md", b"3")])
    listing = backend.ls("/").entries
    assert listing is not None
    assert [(entry["path"], entry["is_dir"]) for entry in listing] == [
        ("/c.md", False),
        ("/x", True),
    ]
    assert "is a directory" in str(backend.read("/x").error)
    assert backend.download_files(["/x"])[0].error == "is_directory"
    assert backend.delete("/x").error is None
    assert "not found" in str(backend.delete("/x").error)
    matches = backend.glob("**/*.md").matches
    assert matches is not None
    assert [match["path"] for match in matches] == ["/c.md"]


def test_grep_stops_after_the_requested_number(backend: CarrelBackend) -> None:
    backend.upload_files([(f"/{name}.txt", b"one\none\n") for name in "abc"])
    result = backend.grep("one", max_count=3)
    assert (len(result.matches or ()), result.truncated) == (3, True)
    assert not backend.grep("one", max_count=6).truncated
    assert backend.grep("one", "/b.txt").matches == [
        {"path": "/b.txt", "line": 1, "text": "one"},
        {"path": "/b.txt", "line": 2, "text": "one"},
    ]


def test_paths_that_lead_out_are_refused(backend: CarrelBackend) -> None:
    assert "'..'" in str(backend.read("/../a").error)
    assert backend.write("/a/../../b", "x").error
    assert backend.glob("../*").error


def test_last_newline_is_part_of_the_last_window_only(backend: CarrelBackend) -> None:
    backend.write("/a.txt", "1\n2\n3\n")
    first, last = backend.read("/a.txt", 0, 2), backend.read("/a.txt", 2, 2)
    assert (first.file_data or {}).get("content") == "1\n2"
    assert (last.file_data or {}).get("content") == "3\n"
    assert (first.next_offset, last.next_offset, last.total_lines) == (2, None, 3)


def test_own_files_of_an_agent(client: Client) -> None:
    agent = create_agent(client)
    backend = CarrelBackend(client.agent(agent.slug))
    assert backend.write("/memory/lessons.md", "Test first.").error is None
    assert client.agent(agent.slug).get("memory/lessons.md").content == "Test first."
    assert backend.edit("/GUARDRAILS.md", "Guardrails", "Nothing").error


def test_awaiting_client_and_names_below_the_root(client: Client) -> None:
    agent = create_agent(client, "bypass")

    async def work() -> None:
        async with AsyncClient(URL, TOKEN) as awaiting:
            sandbox = CarrelSandbox(awaiting, agent.slug, agent.workspace)
            await sandbox.awrite("/workspace/a.txt", "hello")
            result = await sandbox.aexecute("cat a.txt; echo no >&2; exit 3")
            assert (result.output, result.exit_code) == ("hellono\n", 3)
            read = await sandbox.aread("/a.txt")
            assert (read.file_data or {}).get("content") == "hello"
            assert (await sandbox.aexecute("sleep 5", timeout=1)).exit_code == 124
            with pytest.raises(asyncio.InvalidStateError):
                sandbox.ls("/")

    asyncio.run(work())
