"""What an account may say of a sandbox and of a workspace, and in which words it is told no."""

from __future__ import annotations

from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core import field_validation
from carrel.core.agents.config import parse_config as checked_agent
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
WRONG: Final[list[tuple[dict[str, Any], str]]] = [
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


@pytest.mark.parametrize(("config", "told"), WRONG, ids=[told for _, told in WRONG])
def test_what_does_not_fit_is_told_in_known_words(config: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError) as refused:
        parse_sandbox_config(config)
    assert told in str(refused.value)


def test_where_nothing_is_said_it_asks_and_runs_here_without_a_network() -> None:
    assert parse_sandbox_config({}) == {"provider": "local", "permissionMode": "ask"}
    assert not has_network_access(parse_sandbox_config({}))


def test_what_fits_is_kept_as_it_was_given_and_what_nobody_knows_is_dropped() -> None:
    said = {
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
    assert parse_sandbox_config({**said, "size": "large", "colour": "green"}) == said
    assert parse_sandbox_config(parse_sandbox_config(said)) == said
    assert parse_sandbox_config({"timeout": 30.0})["timeout"] == 30


def test_either_word_for_a_network_is_understood() -> None:
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
    shown = mask_secrets(SECRET)
    assert "canary" not in str(shown)
    assert str(shown).count("shown") == 3
    assert str(shown).count(MASK) == str(SECRET).count("canary") == 9
    assert shown["options"]["maxTokens"] == 5
    assert list(shown["envVars"]) == ["A", "B"]


def test_a_mask_that_comes_back_stands_for_what_is_kept() -> None:
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
def test_whatever_is_said_is_kept_or_refused_and_never_breaks(said: dict[str, Any]) -> None:
    for check in (parse_sandbox_config, workspace_config.parse_workspace_config):
        try:
            kept = check(said)
        except ValidationError:
            continue
        assert check(kept) == kept


def _secrets(config: dict[str, Any]) -> list[tuple[ConfigPath, str]]:
    found: list[tuple[ConfigPath, str]] = []

    def become(place: ConfigPath, value: str) -> str:
        found.append((place, value))
        return value

    map_secrets(config, become)
    return found


@given(st.dictionaries(st.sampled_from(["envVars", "options"]), json, max_size=2))
def test_secrets_are_the_same_places_however_often_they_are_rewritten(said: dict[str, Any]) -> None:
    before, after = _secrets(said), _secrets(mask_secrets(said))
    assert after == [(place, MASK) for place, _ in before]
    assert restore_secrets(mask_secrets(said), said) == said or MASK in str(said)


@given(json, json)
def test_a_patch_twice_is_a_patch_once(stored: Any, patch: Any) -> None:
    once = merge_patch(stored, patch)
    assert merge_patch(once, patch) == once


def test_a_patch_merges_objects_replaces_lists_and_takes_away_by_null() -> None:
    stored = {"a": {"b": 1, "c": [1, 2]}, "d": 4}
    assert merge_patch(stored, {"a": {"b": None, "c": [3]}, "e": {"f": None}}) == {
        "a": {"c": [3]},
        "d": 4,
        "e": {},
    }
    assert stored == {"a": {"b": 1, "c": [1, 2]}, "d": 4}


def test_what_is_nested_too_deeply_is_refused_however_deep() -> None:
    deep: Any = "x"
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(ValidationError, match="config is nested too deeply"):
        field_validation.require_shallow("config", {"options": deep})
    field_validation.require_shallow("config", {"options": {"a": [{"b": 1}]}})


def test_a_workspace_is_kept_with_all_others_and_its_harness_is_on() -> None:
    assert workspace_config.parse_workspace_config({}) == {"storage": {"provider": "s3"}}
    said = {"storage": {"provider": "s3"}, "harness": {"enabled": False}}
    assert workspace_config.parse_workspace_config({**said, "isolation": False}) == said
    wrongs: list[tuple[dict[str, Any], str]] = [
        ({"storage": "s3"}, "config.storage must be an object"),
        ({"storage": {"provider": "disk"}}, "config.storage.provider must be one of: s3"),
        ({"storage": {"bucket": "mine"}}, "config.storage.bucket is not supported"),
        ({"harness": True}, "config.harness must be an object"),
        ({"harness": {"enabled": 1}}, "config.harness.enabled must be a boolean"),
    ]
    for wrong, told in wrongs:
        with pytest.raises(ValidationError, match=told):
            workspace_config.parse_workspace_config(wrong)


@pytest.mark.parametrize(
    ("config", "told"),
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
def test_what_an_agent_refers_to_is_checked_by_form(config: dict[str, Any], told: str) -> None:
    with pytest.raises(ValidationError, match=told):
        checked_agent(config)


def test_one_workspace_may_be_attached_under_two_names() -> None:
    both = [{"name": name, "workspaceId": "ws_1", "sandbox": None} for name in ("a.b-c", "d_9")]
    config = checked_agent({"sandbox": None, "workspaces": both})
    assert [one.workspace_id for one in config.workspaces] == ["ws_1", "ws_1"]
