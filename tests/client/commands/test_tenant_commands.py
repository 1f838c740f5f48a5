"""Keys, secrets, webhooks, the policy and the tenant are managed at the command line."""

from __future__ import annotations

import json
import secrets
from pathlib import Path as File

import httpx
import pytest
from tests.client.cli_runner import CarrelCommand

PUBLIC_ADDRESS = "https://93.184.216.34/"


@pytest.fixture
def suffix() -> str:
    """End of the names of one test."""
    return secrets.token_hex(5)


def test_a_new_key_is_printed_alone_and_never_again(carrel: CarrelCommand, suffix: str) -> None:
    carrel.output("agents", "create", f"a{suffix}")
    created = carrel("keys", "create", suffix, "--agent", f"a{suffix}", "--expires", "2035-01-01")
    assert created.exit_code == 0, created.output
    key = created.stdout.strip()
    assert "not shown again" in created.stderr
    assert carrel.output("ls", f"a{suffix}", "--token", key)
    listed = carrel.output("keys")
    [line] = [line for line in listed.splitlines() if line.startswith(suffix)]
    assert f" a{suffix} " in line
    assert key not in listed + carrel.output("keys", "--json")
    row = carrel.json("keys", "show", suffix)
    assert (row["kind"], row["expiresAt"]) == ("agent", "2035-01-01T00:00:00.000Z")
    assert "key" not in row


def test_a_rotated_key_is_replaced_and_a_revoked_one_is_refused(
    carrel: CarrelCommand, suffix: str
) -> None:
    first = carrel.json("keys", "create", suffix, "--scope", "tenant:read")
    assert (first["kind"], first["scopes"]) == ("service", ["tenant:read"])
    second = carrel.json("keys", "rotate", first["id"])
    assert second["key"] != first["key"]
    ambiguous = carrel("keys", "revoke", suffix, "--yes")
    assert (ambiguous.exit_code, "use an id" in ambiguous.stderr) == (1, True)
    assert carrel("keys", "revoke", second["id"]).exit_code == 1
    assert carrel.output("tenant", "--token", second["key"])
    assert carrel.output("keys", "revoke", second["id"], "--yes") == f"{second['id']}: revoked\n"
    assert carrel("tenant", "--token", second["key"]).exit_code == 1
    assert carrel.json("keys", "revoke", "unknown", "--yes", code=1) == {
        "ok": False,
        "problem": "no such key: unknown",
    }


def test_secrets_are_read_from_a_file_or_a_pipe_only(
    carrel: CarrelCommand, suffix: str, tmp_path: File
) -> None:
    file = tmp_path / "value"
    file.write_text("canary-of-the-file\n")
    assert carrel.output("secrets", "put", suffix, file) == f"{suffix}: stored\n"
    carrel.output("secrets", "put", f"{suffix}-2", input="canary-of-the-pipe\n")
    carrel.output("agents", "create", f"a{suffix}")
    text = "canary-of-the-file canary-of-the-pipe"
    carrel.output("put", f"a{suffix}/notes/today.md", "-", input=text)
    served = carrel.output("cat", f"a{suffix}/notes/today.md")
    assert served == f"[REDACTED:{suffix}] [REDACTED:{suffix}-2]"
    assert {suffix, f"{suffix}-2"} <= {row["id"] for row in carrel.json("secrets")["secrets"]}
    assert suffix in carrel.output("secrets")
    assert "value" not in carrel.json("secrets", "show", suffix)
    assert carrel("secrets", "put", suffix, "a-value-as-argument").exit_code == 2
    for id in (suffix, f"{suffix}-2"):
        assert carrel.output("secrets", "delete", id, "--yes") == f"{id}: deleted\n"


def test_webhooks_are_named_by_id_or_url(carrel: CarrelCommand, suffix: str) -> None:
    url = f"{PUBLIC_ADDRESS}{suffix}"
    created = carrel("webhooks", "create", url, "--event", "workspace.updated")
    assert created.exit_code == 0, created.output
    assert created.stdout.startswith("whsec_")
    row = carrel.json("webhooks", "show", url)
    assert (row["events"], row["active"]) == (["workspace.updated"], True)
    assert created.stdout.strip() not in carrel.output("webhooks", "--json")
    assert carrel.json("webhooks", "change", url, "--inactive")["active"] is False
    table = carrel.output("webhooks")
    assert [line.split()[1:3] for line in table.splitlines() if line.startswith(url)] == [
        ["workspace.updated", "no"]
    ]
    moved = carrel.json("webhooks", "change", row["id"], "--to", f"{url}-2", "--event", "*")
    assert (moved["url"], moved["events"]) == (f"{url}-2", ["*"])
    assert carrel.json("webhooks", "deliveries", row["id"]) == {"deliveries": []}
    sent = carrel.json("webhooks", "test", row["id"])
    [delivery] = carrel.json("webhooks", "deliveries", row["id"])["deliveries"]
    assert (delivery["id"], delivery["type"]) == (sent["id"], "webhook.test")
    assert sent["id"] in carrel.output("webhooks", "deliveries", row["id"])
    assert carrel("webhooks", "replay", row["id"], "unknown").exit_code == 1
    assert carrel.output("webhooks", "delete", f"{url}-2", "--yes") == f"{url}-2: deleted\n"


def test_the_policy_is_shown_previewed_and_replaced(
    carrel: CarrelCommand, http: httpx.Client, tmp_path: File
) -> None:
    before = carrel.json("policy")
    try:
        file = tmp_path / "policy.json"
        rules = [{"pattern": "SOUL.md", "class": "pinned"}]
        file.write_text(json.dumps({**before, "classes": rules}))
        carrel.output("agents", "create", f"a{secrets.token_hex(5)}")
        effect = carrel.json("policy", "preview", file)
        assert [(row["path"], row["to"]) for row in effect["changes"]] == [("SOUL.md", "pinned")]
        table = carrel("policy", "preview", file)
        assert table.stdout.splitlines()[1].split()[:3] == ["SOUL.md", "live", "pinned"]
        refused = carrel("policy", "put", file)
        assert (refused.exit_code, "pass --yes" in refused.stderr) == (1, True)
        assert carrel.json("policy") == before
        stored = carrel.json("policy", "put", file, "--yes", "--confirm")
        assert stored["classes"] == rules
        assert "SOUL.md" in carrel.output("policy")
        file.write_text("[]")
        assert carrel("policy", "put", file, "--yes").exit_code == 2
    finally:
        headers = {"Carrel-Reason": "end of the test"}
        http.put("/v1/policy", json=before, headers=headers).raise_for_status()


def test_the_tenant_is_shown_and_renamed(carrel: CarrelCommand) -> None:
    name = carrel.json("tenant")["name"]
    try:
        assert carrel.output("tenant", "rename", "Acme") == "default: Acme\n"
        assert "name       Acme\n" in carrel.output("tenant", "show")
    finally:
        carrel.output("tenant", "rename", name)


def test_search_names_where_words_are(carrel: CarrelCommand, suffix: str) -> None:
    carrel.output("agents", "create", f"a{suffix}")
    carrel.output("put", f"a{suffix}/notes/today.md", "-", input=f"call {suffix} today")
    [hit] = carrel.json("search", suffix, "--kind", "files")["items"]
    assert (hit["kind"], hit["path"]) == ("file", "notes/today.md")
    line = carrel.output("search", suffix, "--kind", "files").splitlines()[1]
    assert line.startswith("file")
    assert "notes/today.md" in line
    assert carrel.json("search", f"not{suffix}")["items"] == []
