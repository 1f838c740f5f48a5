"""Sandbox and workspace configs: validation, masking and refusal messages."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core import field_validation
from carrel.core.agents.config import parse_config as parse_agent_config
from carrel.core.errors import ValidationError
from carrel.core.field_validation import merge_patch
from carrel.core.sandbox import workspace_config
from carrel.core.sandbox.sandbox_config import (
    MASK,
    ConfigPath,
    has_network_access,
    map_secrets,
    mask_secrets,
    parse_sandbox_config,
    restore_secrets,
)

LISTS: Final = "config.network.allowDomains"
INVALID: Final[list[tuple[dict[str, Any], str]]] = [
    (
        {"provider": "vercel"},
        "config.provider must be one of: local, docker, lambda, e2b, daytona, kubernetes",
    ),
    ({"provider": 7}, "config.provider must be one of"),
    ({"permissionMode": "yolo"}, "config.permissionMode must be one of: edit, ask, bypass"),
    ({"internet": "yes"}, "config.internet must be a boolean"),
    ({"network": True}, "config.network must be an object"),
    ({"network": {"mode": "some"}}, "config.network.mode must be one of: allow-all, deny-all"),
    ({"network": {"mode": "restricted"}}, "config.network.mode restricted cannot be enforced"),
    ({"network": {"allowDomains": ["a.b"]}}, f"{LISTS} needs config.network.mode restricted"),
    (
        {"network": {"mode": "restricted", "allowDomains": [" "]}},
        f"{LISTS} must be an array of non-empty strings",
    ),
    ({"internet": True, "network": {"mode": "deny-all"}}, "contradict each other"),
    ({"internet": False, "network": {"mode": "allow-all"}}, "contradict each other"),
    ({"runtimes": []}, "config.runtimes must be a non-empty array of: bash, python, node"),
    ({"runtimes": ["ruby"]}, "config.runtimes must be a non-empty array"),
    ({"runtimes": [["bash"]]}, "config.runtimes must be a non-empty array"),
    ({"runtimes": "bash"}, "config.runtimes must be a non-empty array"),
    ({"timeout": 0}, "config.timeout must be a positive integer"),
    ({"timeout": 1.5}, "config.timeout must be a positive integer"),
    ({"timeout": True}, "config.timeout must be a positive integer"),
    ({"timeout": 601}, "config.timeout must be an integer from 1 to 600"),
    ({"provider": "lambda", "timeout": 301}, "config.timeout must be an integer from 1 to 300"),
    ({"memoryLimit": -1}, "config.memoryLimit must be a positive integer"),
    (
        {"provider": "lambda", "memoryLimit": 1025},
        "config.memoryLimit must be an integer from 1 to 1024",
    ),
    ({"outputLimitBytes": "9"}, "config.outputLimitBytes must be a positive integer"),
    ({"outputLimitBytes": 262145}, "config.outputLimitBytes must be an integer from 1 to 262144"),
    ({"envVars": []}, "config.envVars must be an object with string values"),
    ({"envVars": {"A": 1}}, "config.envVars must be an object with string values"),
    ({"envVars": {"A=B": "x"}}, "config.envVars must be named by"),
    ({"envVars": {"": "x"}}, "config.envVars must be named by"),
    ({"envVars": {"A": "\0"}}, "hold no NUL"),
    ({"options": []}, "config.options must be an object"),
    (
        {"provider": "lambda", "options": {"functionNames": {}}},
        "config.options.functionNames is not allowed for provider lambda",
    ),
    (
        {"provider": "kubernetes", "options": {"kubeconfig": "x"}},
        "config.options.kubeconfig is not allowed for provider kubernetes",
    ),
    ({"provider": "kubernetes", "options": {"storageClass": "x"}}, "needs a persistent kubernetes"),
    ({"persistent": True, "options": {"persistentHome": True}}, "needs a persistent kubernetes"),
    (
        {"provider": "kubernetes", "persistent": True, "options": {"persistentDiskGb": 201}},
        "config.options.persistentDiskGb must be an integer from 1 to 200",
    ),
    ({"provider": "docker", "options": {"privileged": True}}, "is not allowed for provider docker"),
    ({"persistent": 1}, "config.persistent must be a boolean"),
    ({"provider": "lambda", "persistent": True}, "config.persistent is not supported"),
    ({"lifecycle": {}}, "config.lifecycle needs config.persistent true"),
    ({"lifecycle": 5, "persistent": True}, "config.lifecycle must be an object"),
    (
        {"persistent": True, "lifecycle": {"idleTimeoutSeconds": 604801}},
        "config.lifecycle.idleTimeoutSeconds must be an integer from 1 to 604800",
    ),
    (
        {"persistent": True, "lifecycle": {"maxLifetimeSeconds": 0}},
        "config.lifecycle.maxLifetimeSeconds must be a positive integer",
    ),
]


@pytest.mark.parametrize(("config", "message"), INVALID, ids=[message for _, message in INVALID])
def test_an_invalid_config_is_refused_with_a_message(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError) as refused:
        parse_sandbox_config(config)
    assert message in str(refused.value)


def test_an_empty_config_asks_and_runs_locally_without_network() -> None:
    assert parse_sandbox_config({}) == {"provider": "local", "permissionMode": "ask"}
    assert not has_network_access(parse_sandbox_config({}))


def test_a_valid_config_is_stored_verbatim_and_unknown_fields_are_dropped() -> None:
    config = {
        "provider": "kubernetes",
        "permissionMode": "bypass",
        "internet": True,
        "network": {"mode": "allow-all"},
        "runtimes": ["python", "bash"],
        "timeout": 600,
        "memoryLimit": 8192,
        "outputLimitBytes": 262144,
        "envVars": {"A": "", "_B2": "two"},
        "options": {"persistentDiskGb": 200, "nodes": [1, {"x": None}]},
        "persistent": True,
        "lifecycle": {"idleTimeoutSeconds": 1, "maxLifetimeSeconds": 2592000},
    }
    assert parse_sandbox_config({**config, "size": "large", "colour": "green"}) == config
    assert parse_sandbox_config(parse_sandbox_config(config)) == config
    assert parse_sandbox_config({"timeout": 30.0})["timeout"] == 30


def test_both_network_fields_are_accepted() -> None:
    assert has_network_access(parse_sandbox_config({"internet": True}))
    assert has_network_access(parse_sandbox_config({"network": {"mode": "allow-all"}}))
    assert not has_network_access(parse_sandbox_config({"internet": False, "network": {}}))


SECRET: Final = {
    "envVars": {"A": "canary", "B": "canary"},
    "options": {
        "apiKey": "canary",
        "API_KEY": "canary",
        "clientSecretValue": "canary",
        "private_key": "canary",
        "nested": [{"accessKeyId": "canary", "plain": "shown"}],
        "credentials": {"user": "canary", "list": ["canary"]},
        "maxTokens": 5,
        "apiKeyName": "shown",
        "region": "shown",
    },
}


def test_every_secret_is_masked_and_nothing_else() -> None:
    masked = mask_secrets(SECRET)
    assert "canary" not in str(masked)
    assert str(masked).count("shown") == 3
    assert str(masked).count(MASK) == str(SECRET).count("canary") == 9
    assert masked["options"]["maxTokens"] == 5
    assert list(masked["envVars"]) == ["A", "B"]


def test_a_mask_sent_back_keeps_the_stored_secret() -> None:
    assert restore_secrets(merge_patch(SECRET, mask_secrets(SECRET)), SECRET) == SECRET
    changed = merge_patch(SECRET, {"envVars": {"A": MASK, "B": None, "C": "new"}})
    assert restore_secrets(changed, SECRET)["envVars"] == {"A": "canary", "C": "new"}
    with pytest.raises(ValidationError, match=r"config.envVars.D is .*, but no value is stored"):
        restore_secrets({"envVars": {"D": MASK}}, SECRET)
    with pytest.raises(
        ValidationError, match=r"config.options.tokens.0 is .*, but no value is stored"
    ):
        restore_secrets({"options": {"tokens": [MASK]}}, SECRET)
    assert restore_secrets({"options": {"region": MASK}}, {}) == {"options": {"region": MASK}}


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["token", "a", "apiKey", "b"]), inner, max_size=3)
    ),
    max_leaves=9,
)
keys = st.sampled_from(
    [
        *("provider", "permissionMode", "internet", "network", "runtimes", "timeout"),
        *("memoryLimit", "envVars", "options", "persistent", "lifecycle"),
        *("storage", "harness", "else"),
    ]
)


@given(st.dictionaries(keys, json, max_size=5))
def test_any_config_is_accepted_or_refused(config: dict[str, Any]) -> None:
    for parse in (parse_sandbox_config, workspace_config.parse_workspace_config):
        try:
            parsed = parse(config)
        except ValidationError:
            continue
        assert parse(parsed) == parsed


def _secrets(config: dict[str, Any]) -> list[tuple[ConfigPath, str]]:
    secrets: list[tuple[ConfigPath, str]] = []

    def collect(path: ConfigPath, value: str) -> str:
        secrets.append((path, value))
        return value

    map_secrets(config, collect)
    return secrets


@given(st.dictionaries(st.sampled_from(["envVars", "options"]), json, max_size=2))
def test_masking_preserves_the_paths_of_secrets(config: dict[str, Any]) -> None:
    before, after = _secrets(config), _secrets(mask_secrets(config))
    assert after == [(path, MASK) for path, _ in before]
    assert restore_secrets(mask_secrets(config), config) == config or MASK in str(config)


@given(json, json)
def test_applying_a_patch_twice_equals_applying_it_once(stored: Any, patch: Any) -> None:
    once = merge_patch(stored, patch)
    assert merge_patch(once, patch) == once


def test_a_patch_merges_objects_replaces_lists_and_deletes_by_null() -> None:
    stored = {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merge_patch(stored, {"a": {"b": None, "c": [3]}, "e": {"f": None}}) == {
        "a": {"c": [3]},
        "d": 4,
        "e": {},
    }
    assert stored == {"a": {"b": 1, "c": [1, 2]}, "d": 4}


def test_a_config_nested_too_deeply_is_refused() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValidationError, match="config is nested too deeply"):
        field_validation.require_shallow("config", {"options": deep})
    field_validation.require_shallow("config", {"options": {"a": [{"b": 1}]}})


def test_a_workspace_config_defaults_to_s3_and_drops_unknown_fields() -> None:
    assert workspace_config.parse_workspace_config({}) == {"storage": {"provider": "s3"}}
    config = {"storage": {"provider": "s3"}, "harness": {"enabled": False}}
    assert workspace_config.parse_workspace_config({**config, "isolation": False}) == config
    invalid_configs: list[tuple[dict[str, Any], str]] = [
        ({"storage": "s3"}, "config.storage must be an object"),
        ({"storage": {"provider": "disk"}}, "config.storage.provider must be one of: s3"),
        ({"storage": {"bucket": "mine"}}, "config.storage.bucket is not supported"),
        ({"harness": True}, "config.harness must be an object"),
        ({"harness": {"enabled": 1}}, "config.harness.enabled must be a boolean"),
    ]
    for invalid, message in invalid_configs:
        with pytest.raises(ValidationError, match=message):
            workspace_config.parse_workspace_config(invalid)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"sandbox": ""}, r"config.sandbox must be a non-empty string"),
        ({"sandbox": 5}, r"config.sandbox must be a non-empty string"),
        ({"workspaces": {}}, r"config.workspaces must be an array"),
        ({"workspaces": None}, r"config.workspaces must be an array"),
        ({"workspaces": ["ws_1"]}, r"config.workspaces\[0\] must be an object"),
        ({"workspaces": [{}]}, r"config.workspaces\[0\].name must be a non-empty string"),
        (
            {"workspaces": [{"name": "a b", "workspaceId": "ws_1"}]},
            r"config.workspaces\[0\].name must have only letters, digits",
        ),
        (
            {"workspaces": [{"name": "a\n", "workspaceId": "ws_1"}]},
            r"config.workspaces\[0\].name must have only letters, digits",
        ),
        (
            {"workspaces": [{"name": "a"}]},
            r"config.workspaces\[0\].workspaceId must be a non-empty string",
        ),
        (
            {"workspaces": [{"name": "a", "workspaceId": "ws_1", "sandbox": ""}]},
            r"config.workspaces\[0\].sandbox must be a non-empty string or null",
        ),
        (
            {"workspaces": [{"name": "a", "workspaceId": f"ws_{n}"} for n in (1, 2)]},
            r"config.workspaces\[1\].name must be unique within the agent",
        ),
    ],
)
def test_an_agents_references_are_validated_by_form(config: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        parse_agent_config(config)


def test_a_workspace_may_be_attached_under_two_names() -> None:
    both = [{"name": name, "workspaceId": "ws_1", "sandbox": None} for name in ("a.b-c", "d_9")]
    config = parse_agent_config({"sandbox": None, "workspaces": both})
    assert [attachment.workspace_id for attachment in config.workspaces] == ["ws_1", "ws_1"]
