"""``carrel.open``: the client over a store in the same process, on a file and on PostgreSQL."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path as FilePath

import pytest
from tests.client.drivers import EVENT_SECONDS, next_event

import carrel
import carrel_client
from carrel import InProcessClient
from carrel.core import errors
from carrel.wiring.in_process import settings_for
from carrel_client import AsyncEventStream

HEAVY = (
    *("asyncpg", "anyio", "cryptography", "httpx", "msgspec"),
    *("prometheus_client", "structlog", "uvicorn"),
)


@pytest.fixture(params=["directory", "postgres"])
def location(request: pytest.FixtureRequest, tmp_path: FilePath) -> str:
    if request.param == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return str(tmp_path)


@pytest.fixture
async def client(location: str, tmp_path: FilePath) -> AsyncIterator[InProcessClient]:
    async with carrel.open(location, data=str(tmp_path)) as opened:
        yield opened


def test_import_of_carrel_imports_no_dependency() -> None:
    script = f"import sys, carrel; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert done.stdout.decode().strip() == "[]"


def test_every_exported_name_exists() -> None:
    for module in (carrel, carrel_client):
        for name in module.__all__:
            assert getattr(module, name) is not None
        assert not hasattr(module, "Everything")


def test_every_refusal_of_the_server_is_a_class_of_the_client_by_its_code() -> None:
    for refusal in errors.Refusal.__subclasses__():
        exported = getattr(carrel, refusal.__name__)
        assert exported is carrel_client.errors.ERRORS_BY_CODE[refusal.code]
        assert exported.__name__ == refusal.__name__
        assert refusal.__name__ in carrel.__all__
    assert len(carrel_client.errors.ERRORS_BY_CODE) == len(errors.Refusal.__subclasses__())


def test_environment_and_settings_file_are_not_read(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_INLINE_BYTES", "7")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "carrel.toml").write_text("inline_bytes = 8\n")
    assert settings_for("somewhere", {}).inline_bytes == 65536
    assert settings_for("somewhere", {"inline_bytes": 9}).inline_bytes == 9


def test_location_is_a_directory_or_a_database_url(tmp_path: FilePath) -> None:
    assert settings_for(tmp_path, {}).sqlite_file == tmp_path / "carrel.db"
    by_url = settings_for(f"sqlite:///{tmp_path}/a.db", {})
    assert (by_url.sqlite_file, by_url.data_directory) == (tmp_path / "a.db", tmp_path)
    elsewhere = settings_for(f"sqlite:///{tmp_path}/a.db", {"data": "keys"})
    assert elsewhere.data_directory == FilePath("keys")
    assert settings_for("postgresql://here/carrel", {}).sqlite_file is None


@pytest.mark.anyio
async def test_database_file_may_have_any_name(tmp_path: FilePath) -> None:
    async with carrel.open(f"sqlite:///{tmp_path}/any.db") as client:
        await client.workspace().put("a.md", "x")
    async with carrel.open(f"sqlite:///{tmp_path}/any.db") as client:
        assert (await client.workspace().get("a.md")).content == "x"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("location", "settings"),
    [
        ("mysql://here/carrel", {}),
        ("data", {"colour": "blue"}),
        ("data", {"inline_bytes": -1}),
        ("data", {"blobs_url": "ftp://here"}),
    ],
)
async def test_invalid_settings_are_refused(
    location: str, settings: dict[str, object], tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(carrel.SettingsError):
        async with carrel.open(location, **settings):
            raise AssertionError("it should not have opened")


@pytest.mark.anyio
async def test_store_keeps_files_and_secrets_between_programs(
    location: str, tmp_path: FilePath
) -> None:
    async with carrel.open(location, data=str(tmp_path)) as client:
        await client.secrets.put("db", "hunter2hunter2")
        await client.workspace().put("SOUL.md", "Be kind.")
    async with carrel.open(location, data=str(tmp_path)) as client:
        assert (await client.workspace().get("SOUL.md")).content == "Be kind."
        again = await client.workspace().put("SOUL.md", "say hunter2hunter2")
        assert (again.version, again.content) == (2, "say [REDACTED:db]")


@pytest.mark.anyio
async def test_two_clients_of_a_store_see_each_others_writes(
    location: str, tmp_path: FilePath
) -> None:
    async with (
        carrel.open(location, data=str(tmp_path)) as first,
        carrel.open(location, data=str(tmp_path)) as second,
        first.workspace().events() as stream,
    ):
        await second.workspace().put("a.md", "1")
        assert (await next_event(stream)).payload["path"] == "a.md"
        assert (await first.workspace().get("a.md")).content == "1"


@pytest.mark.anyio
async def test_one_of_many_concurrent_writers_of_a_version_wins(client: InProcessClient) -> None:
    workspace = client.workspace()
    first = await workspace.put("a.md", "0")

    async def write(text: str) -> bool:
        try:
            await workspace.put("a.md", text, if_match=first.etag)
        except carrel.WorkspaceConflict:
            return False
        return True

    assert sum(await asyncio.gather(*(write(str(number)) for number in range(16)))) == 1


@pytest.mark.anyio
async def test_author_is_in_process(client: InProcessClient) -> None:
    await client.workspace().put("a.md", "x")
    [version] = await client.workspace().history("a.md")
    assert version.author == "in-process"


@pytest.mark.anyio
async def test_tenants_are_created_and_separate(client: InProcessClient) -> None:
    created = await client.tenants.create(
        "acme", "Acme", owner_name="Ann", owner_email="ann@acme.example"
    )
    assert created.owner_token
    acme = await client.tenant("acme")
    await acme.workspace().put("a.md", "acme")
    run = await acme.workspace().start_run("nightly")
    assert await client.workspace().list() == ()
    with pytest.raises(carrel.NotFound):
        await client.run(run.id)
    assert (await acme.tenants.me()).slug == "acme"
    assert (await client.tenants.me()).slug == "default"
    with pytest.raises(carrel.NotFound):
        await client.tenant("unknown")
    with pytest.raises(carrel.Conflict):
        await client.tenants.create("acme", "A", owner_name="Ann", owner_email="a@acme.example")


@pytest.mark.anyio
async def test_stream_continues_after_a_timeout_and_loses_nothing(client: InProcessClient) -> None:
    workspace = client.workspace()
    async with workspace.events() as stream:
        for number in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(anext(stream), 0.02)
            await workspace.put(f"{number}.md", "x")
            assert (await next_event(stream)).payload["path"] == f"{number}.md"


@pytest.mark.anyio
async def test_streams_end_when_the_client_is_closed(location: str, tmp_path: FilePath) -> None:
    paths: list[str] = []

    async def read(stream: AsyncEventStream) -> None:
        async for event in stream:
            paths.append(event.payload["path"])

    async with carrel.open(location, data=str(tmp_path)) as client:
        workspace = client.workspace()
        streams = [workspace.events(since="0") for _ in range(3)]
        tasks = [asyncio.create_task(read(stream)) for stream in streams]
        idle = workspace.events()
        await idle.start()
        await workspace.put("a.md", "x")
        async with asyncio.timeout(EVENT_SECONDS):
            while len(paths) < 3:
                await asyncio.wait(tasks, timeout=0.01)
    await asyncio.wait_for(asyncio.gather(*tasks), EVENT_SECONDS)
    assert paths == ["a.md"] * 3
    assert [event async for event in idle] == []


@pytest.mark.anyio
async def test_errors_that_are_no_refusals_are_raised_as_they_are(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with carrel.open(tmp_path) as client:

        async def fail(*_: object, **__: object) -> None:
            raise ZeroDivisionError

        monkeypatch.setattr("carrel.actions.files.files.get_file", fail)
        with pytest.raises(ZeroDivisionError):
            await client.workspace().get("a.md")


@pytest.mark.anyio
async def test_corrupt_content_is_raised_without_a_retry(
    tmp_path: FilePath, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    async with carrel.open(tmp_path) as client:
        await client.workspace().put("a.md", "x")

        async def fail(*_: object, **__: object) -> None:
            from carrel.ports import CorruptContent  # noqa: PLC0415 - the server's own class

            calls.append(1)
            raise CorruptContent("its bytes are gone")

        monkeypatch.setattr("carrel.actions.files.files.get_file", fail)
        with pytest.raises(carrel.CorruptContent, match="its bytes are gone"):
            await client.workspace().get("a.md")
    assert len(calls) == 1


@pytest.mark.anyio
async def test_generated_idempotency_keys_are_not_stored(tmp_path: FilePath) -> None:
    async with carrel.open(tmp_path) as client:
        await client.workspace().put("a.md", "x")
        await client.workspace().put("b.md", "x", idempotency_key="mine")
        await client.workspace().put("b.md", "x", idempotency_key="mine")
        assert (await client.workspace().get("b.md")).version == 1
