"""Generate the console's types from OpenAPI and GraphQL: `make ui-types`."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path as File
from typing import Any, Final

from carrel.server.graphql import SCHEMA_TEXT
from carrel.server.http.api_docs import documentation_endpoints
from carrel.server.http.metrics import Metrics
from carrel.server.http.openapi import build_document
from carrel.settings import Settings
from carrel.wiring.server_app import endpoints

UI: Final = File(__file__).resolve().parent.parent / "ui"


def write(out: File) -> None:
    """Write rest.generated.d.ts and graphql.generated.ts into a directory."""
    all_endpoints = [*endpoints(Settings()), Metrics().endpoint()]
    all_endpoints += documentation_endpoints(all_endpoints, "Carrel", "")
    with tempfile.TemporaryDirectory() as folder:
        openapi = File(folder, "openapi.json")
        document = without_bytes(build_document(all_endpoints, "Carrel", ""))
        openapi.write_text(json.dumps(document), "utf-8")
        schema = File(folder, "schema.graphql")
        schema.write_text(SCHEMA_TEXT, "utf-8")
        command = ["node", "codegen.mjs", str(openapi), str(schema), str(out)]
        subprocess.run(command, cwd=UI, check=True)


def without_bytes(document: dict[str, Any]) -> dict[str, Any]:
    """The document with JSON bodies only where a file may also be bytes of any type."""
    for operations in document["paths"].values():
        for operation in operations.values():
            for message in (operation.get("requestBody", {}), *operation["responses"].values()):
                message.get("content", {}).pop("*/*", None)
    return document


if __name__ == "__main__":
    write(File(sys.argv[1]) if sys.argv[1:] else UI / "src" / "api")
