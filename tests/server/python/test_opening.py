"""What `import carrel` costs and gives, and what `carrel.open` makes of where and how."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path as File

import pytest

import carrel
from carrel.core import errors
from carrel.wiring.inprocess import settings_for

HEAVY = [
    "asyncpg",
    "anyio",
    "cryptography",
    "httpx",
    "msgspec",
    "prometheus_client",
    "structlog",
    "uvicorn",
]


def test_importing_carrel_costs_next_to_nothing() -> None:
    script = f"import sys, carrel; print([name for name in {HEAVY} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True)
    assert told.stdout.decode().strip() == "[]"


def test_everything_that_is_promised_is_there() -> None:
    for name in carrel.__all__:
        assert getattr(carrel, name) is not None
    assert not hasattr(carrel, "Everything")


def test_every_refusal_can_be_caught_by_its_name() -> None:
    kinds: list[type[errors.Refusal]] = [errors.Refusal, *errors.Refusal.__subclasses__()]
    for kind in kinds:
        assert getattr(carrel, kind.__name__) is kind
        assert kind.__name__ in carrel.__all__


def test_the_environment_and_the_file_beside_are_not_read(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CARREL_INLINE_BYTES", "7")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "carrel.toml").write_text("inline_bytes = 8\n")
    assert settings_for("somewhere", {}).inline_bytes == 65536
    assert settings_for("somewhere", {"inline_bytes": 9}).inline_bytes == 9


def test_a_place_is_a_directory_or_the_url_of_a_database(tmp_path: File) -> None:
    assert settings_for(tmp_path, {}).sqlite_file == tmp_path / "carrel.db"
    by_url = settings_for(f"sqlite:///{tmp_path}/a.db", {})
    assert (by_url.sqlite_file, by_url.directory) == (tmp_path / "a.db", tmp_path)
    elsewhere = settings_for(f"sqlite:///{tmp_path}/a.db", {"data": "keys"})
    assert elsewhere.directory == File("keys")
    assert settings_for("postgresql://here/carrel", {}).sqlite_file is None


@pytest.mark.anyio
async def test_a_file_of_any_name_will_do(tmp_path: File) -> None:
    async with carrel.open(f"sqlite:///{tmp_path}/any.db") as desk:
        await desk.workspace().put("a.md", "x")
    async with carrel.open(f"sqlite:///{tmp_path}/any.db") as desk:
        assert (await desk.workspace().get("a.md")).content == "x"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("where", "settings"),
    [
        ("mysql://here/carrel", {}),
        ("data", {"colour": "blue"}),
        ("data", {"inline_bytes": -1}),
        ("data", {"blobs_url": "ftp://here"}),
    ],
)
async def test_settings_that_cannot_be_used_are_named(
    where: str, settings: dict[str, object], tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(carrel.Unusable):
        async with carrel.open(where, **settings):
            raise AssertionError("it should not have opened")
