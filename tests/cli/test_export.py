"""``carrel export`` as an operator runs it, and a server that maintains the catalog."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path as File

import httpx
import pytest
from tests.cli.test_maintenance import carrel, run_json, run_process
from tests.support.contract_stores import flip_bit
from tests.support.server_process import TOKEN, serving
from tests.support.services.s3 import Bucket
from tests.support.tenants import create_tenant
from tests.support.wait import wait_until_sync

from carrel.actions.agents import agents, templates
from carrel.actions.agents.agents import NewAgent
from carrel.actions.files import files
from carrel.actions.overlay import stacks
from carrel.adapters.filesystem.blob_directory import DirectoryBlobStore
from carrel.adapters.s3 import S3ObjectStore
from carrel.core.identifiers import Path, digest
from carrel.settings import Settings
from carrel.wiring.catalog import is_same_location
from carrel.wiring.ports import open_ports

AGENTS = "tenants/acme/agents"
LARGE = b"be good " * 20_000


@pytest.fixture
def settings(tmp_path: File) -> dict[str, str]:
    """The settings of a store of two tenants, one of which has an agent with a large pin."""
    data = tmp_path / "data"
    settings = {"data": str(data), "blobs_url": f"file://{data}/objects"}

    async def make() -> None:
        async with open_ports(Settings(**settings)) as opened:  # type: ignore[arg-type]
            ports = opened.ports
            _, owner = await create_tenant(ports)
            await create_tenant(ports, "acme-2")
            await templates.create(ports, owner, "sales", "Sales")
            sales = await stacks.template_stack(ports, owner, "sales")
            await files.put(ports, sales, Path("GUARDRAILS.md"), LARGE, owner)
            await agents.create(ports, owner, NewAgent("marco", "Marco", "sales"))
            own = await stacks.agent_stack(ports, owner, "marco")
            await files.put(ports, own, Path("notes/ä.md"), "ünï".encode(), owner)

    asyncio.run(make())
    return settings


def test_second_export_to_a_directory_writes_nothing(
    settings: dict[str, str], tmp_path: File
) -> None:
    out = tmp_path / "out"

    done = carrel("export", "--layout", "catalog", out, **settings)

    assert done.returncode == 0
    assert "exporting agents: 1 of 1" in done.stderr
    assert (out / AGENTS / "marco/workspace/notes/ä.md").read_text() == "ünï"
    pin = f"_catalog/sales/workspace-versions/GUARDRAILS.md@{digest(LARGE)}"
    assert (out / AGENTS / pin).read_bytes() == LARGE
    manifest = json.loads((out / AGENTS / "marco/workspace/manifest.json").read_bytes())
    assert [file["path"] for file in manifest["files"]] == ["notes/ä.md"]
    code, report = run_json("export", "--layout", "catalog", out, **settings)
    assert (code, report["ok"], report["tenants"]) == (0, True, 2)
    assert (report["written"], report["deleted"], report["failures"]) == (0, 0, [])
    assert report["unchanged"] >= 4


def test_one_tenant_is_exported_alone(settings: dict[str, str], tmp_path: File) -> None:
    code, report = run_json(
        "export", "--layout", "catalog", tmp_path, "--tenant", "acme", **settings
    )

    assert (code, report["tenants"]) == (0, 1)
    assert [file.name for file in (tmp_path / "tenants").iterdir()] == ["acme"]
    missing = carrel("export", "--layout", "catalog", tmp_path, "--tenant", "unknown", **settings)
    assert (missing.returncode, missing.stderr) == (1, "Error: no such tenant: unknown\n")


def test_damaged_pin_is_named_and_the_rest_is_exported(
    settings: dict[str, str], tmp_path: File
) -> None:
    objects = DirectoryBlobStore(tmp_path / "data/objects")

    async def tamper() -> None:
        await objects.discard([digest(LARGE)])
        await objects.delete([digest(LARGE)])
        await objects.put(digest(LARGE), flip_bit(LARGE))

    asyncio.run(tamper())
    out = tmp_path / "out"

    done = carrel("export", "--layout", "catalog", out, **settings)

    pin = f"{AGENTS}/_catalog/sales/workspace-versions/GUARDRAILS.md@{digest(LARGE)}"
    assert done.returncode == 1
    assert f"error: {pin}: " in done.stderr
    assert (out / AGENTS / "marco/workspace/notes/ä.md").exists()
    assert not (out / pin).exists()
    code, report = run_json("export", "--layout", "catalog", out, **settings)
    assert (code, report["ok"]) == (1, False)
    assert pin in [failure["key"] for failure in report["failures"]]


def test_foreign_catalog_is_adopted_only_on_request(
    settings: dict[str, str], tmp_path: File
) -> None:
    theirs = tmp_path / "out/tenants/other/agents/a/workspace/b.md"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")

    done = carrel("export", "--layout", "catalog", tmp_path / "out", **settings)
    assert (done.returncode, "--adopt" in done.stderr) == (1, True)
    assert theirs.exists()

    done = carrel("export", "--layout", "catalog", tmp_path / "out", "--adopt", **settings)
    assert (done.returncode, theirs.exists()) == (0, False)


@pytest.mark.parametrize("target", ["http://x/y", "s3://", "file://", "s3:///prefix"])
def test_invalid_target_is_named(settings: dict[str, str], target: str) -> None:
    done = carrel("export", "--layout", "catalog", target, **settings)

    assert done.returncode == 1
    assert "must be file:///… or s3://bucket/prefix" in done.stderr


@pytest.mark.parametrize("arguments", [["there"], ["--layout", "catalog"], ["--layout", "x", "y"]])
def test_invalid_export_arguments_exit_with_2(arguments: list[str]) -> None:
    assert carrel("export", *arguments).returncode == 2


def s3_settings(bucket: Bucket) -> dict[str, str]:
    return {
        "s3_endpoint": bucket.endpoint,
        "s3_region": bucket.region,
        "s3_access_key": bucket.access_key,
        "s3_secret_key": bucket.secret_key,
    }


async def objects_of(bucket: Bucket, prefix: str) -> Mapping[str, bytes | None]:
    object_store = S3ObjectStore.open(
        bucket.name,
        prefix,
        endpoint=bucket.endpoint,
        region=bucket.region,
        access_key=bucket.access_key,
        secret_key=bucket.secret_key,
    )
    return {key: await object_store.get(key) async for key, _ in object_store.list("")}


def test_bucket_gets_the_same_bytes_as_a_directory(
    settings: dict[str, str], tmp_path: File, s3_bucket: Bucket
) -> None:
    url, out = f"s3://{s3_bucket.name}/the/catalog", tmp_path / "out"
    with_s3 = settings | s3_settings(s3_bucket)

    assert run_json("export", "--layout", "catalog", url, **with_s3)[0] == 0
    assert carrel("export", "--layout", "catalog", out, **settings).returncode == 0

    expected = {str(f.relative_to(out)): f.read_bytes() for f in out.rglob("*") if f.is_file()}
    assert asyncio.run(objects_of(s3_bucket, "the/catalog")) == expected
    assert run_json("export", "--layout", "catalog", url, **with_s3)[1]["written"] == 0
    wrong = with_s3 | {"s3_secret_key": "wrong"}
    assert carrel("export", "--layout", "catalog", url, **wrong).returncode == 1


_EXPORT = ("export", "--layout", "catalog")


def _read(file: File) -> bytes | None:
    """Content of a file; None if it is absent or removed during the read."""
    with suppress(FileNotFoundError):
        return file.read_bytes()
    return None


def wait_for_content(http: httpx.Client, file: File, content: bytes | None) -> None:
    """Wait until a file has this content, None meaning absent, while requesting the server."""

    def has_content() -> bool:
        http.get("/healthz").raise_for_status()
        return _read(file) == content

    wait_until_sync(has_content, f"{file} has the content, or is gone if it is None")


def test_server_maintains_the_catalog_and_refuses_other_writers(tmp_path: File) -> None:
    data, out = tmp_path / "data", tmp_path / "out"
    url = f"file://{out}"
    with serving(data, workers=2, catalog_url=url) as live:
        with httpx.Client(
            base_url=live.url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30
        ) as http:
            http.post("/v1/templates", json={"slug": "sales", "name": "Sales"}).raise_for_status()
            new = {"slug": "marco", "name": "Marco", "templateId": "sales"}
            http.post("/v1/agents", json=new).raise_for_status()
            soul_url = "/v1/templates/sales/files/SOUL.md"
            http.put(soul_url, json={"content": "one"}).raise_for_status()
            soul = out / "tenants/default/agents/_catalog/sales/workspace/SOUL.md"
            wait_for_content(http, soul, b"one")
            http.put(soul_url, json={"content": "two"}).raise_for_status()
            wait_for_content(http, soul, b"two")
            busy = carrel("export", "--layout", "catalog", url, data=str(data), catalog_url=url)
            assert (busy.returncode, "maintains the catalog" in busy.stderr) == (1, True)
            (tmp_path / "link").symlink_to(out)
            for other in (
                str(out),
                f"{out}/",
                f"{url}/",
                f"file://{tmp_path}/data/../out",
                f"file://{tmp_path}/%6Fut",
                f"{tmp_path}/link",
                f"file://{tmp_path}/./link/",
            ):
                busy = carrel(*_EXPORT, other, data=str(data), catalog_url=url)
                assert (busy.returncode, "maintains the catalog" in busy.stderr) == (1, True), other
            http.delete(soul_url).raise_for_status()
            wait_for_content(http, soul, None)
        live.kill()
    code, report = run_json("export", "--layout", "catalog", url, data=str(data), catalog_url=url)
    assert (code, report.get("written"), report.get("deleted")) == (0, 0, 0), report


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("s3://bucket/a/b", "s3://bucket/a/b/", True),
        ("s3://bucket", "S3://bucket/", True),
        ("s3://bucket/a", "s3://bucket/b", False),
        ("s3://bucket/a", "s3://other/a", False),
        ("s3://bucket/a/b", "s3://bucket/a", False),
        ("s3://tmp/a", "file:///tmp/a", False),
        ("file:///not/there", "/not/../not/there/", True),
        ("file:///not/there", "/not/there/either", False),
    ],
)
def test_equal_locations_are_recognized_in_every_notation(
    first: str, second: str, same: bool
) -> None:
    assert (is_same_location(first, second), is_same_location(second, first)) == (same, same)


def test_invalid_catalog_url_prevents_the_start_of_a_server(tmp_path: File) -> None:
    done = run_process("serve", data=str(tmp_path), port="0", catalog_url="somewhere")

    assert done.returncode == 1
    assert "CARREL_CATALOG_URL must be file:///… or s3://bucket/prefix" in done.stderr
