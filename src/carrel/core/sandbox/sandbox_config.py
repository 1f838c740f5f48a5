"""A sandbox as an account describes it: what may be said, what is secret of it, what it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from carrel.core import field_validation
from carrel.core.errors import ValidationError
from carrel.core.sandbox.tool_access import PermissionMode

PROVIDERS: Final = ("local", "docker", "lambda", "e2b", "daytona", "kubernetes")
RUNTIMES: Final = ("bash", "python", "node")
MASK: Final = "********"
"""What is shown in place of a secret; given back, it means what is there already."""

DEFAULT_TIMEOUT: Final = 30
DEFAULT_OUTPUT: Final = 65_536
_MOST_SECONDS: Final = {"lambda": 300}
_MOST_MEMORY: Final = {"lambda": 1024}
LONGEST_RUN: Final = 600
LARGEST_MEMORY: Final = 1_048_576
LARGEST_OUTPUT: Final = 262_144
LONGEST: Final = {"idleTimeoutSeconds": 604_800, "maxLifetimeSeconds": 2_592_000}
_LARGEST_DISK: Final = 200

_MODES: Final = ("allow-all", "deny-all", "restricted")
_NOT_FOR_TENANTS: Final[Mapping[str, frozenset[str]]] = {
    "docker": frozenset({"host", "privileged", "volumes", "binds", "mounts", "devices"}),
    "lambda": frozenset({"functionNames"}),
    "kubernetes": frozenset(
        {"kubeconfig", "kubeconfigSsmParam", "namespace", "image"}
        | {"serviceAccountName", "imagePullSecrets"}
    ),
}
_DISK: Final = ("persistentDiskGb", "persistentHome", "storageClass")
_SECRET: Final = re.compile(
    r"secret|token|private_?key|credential|kubeconfig|certificate|access_?key|\Aapi_?key\Z",
    re.IGNORECASE,
)
VARIABLE: Final = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE: Final = re.compile(VARIABLE)

Place = tuple[str | int, ...]
"""Where in a config something stands."""
Become = Callable[[Place, str], str]


def checked(given: Mapping[str, Any]) -> dict[str, Any]:
    """All that is known of it, with what is not said where that is always kept. Raises Malformed.

    What nobody knows is dropped.
    """
    provider = field_validation.one_of("config.provider", given.get("provider", "local"), PROVIDERS)
    mode = given.get("permissionMode", PermissionMode.ASK)
    modes = [str(each) for each in PermissionMode]
    found: dict[str, Any] = {
        "provider": provider,
        "permissionMode": field_validation.one_of("config.permissionMode", mode, modes),
    }
    for name, check in _CHECKS.items():
        if name in given:
            found[name] = check(given[name], provider)
    _check_network(found)
    _check_persistence(found)
    _check_options(found)
    return found


def _internet(value: object, provider: str) -> bool:
    return field_validation.boolean("config.internet", value)


def _network(value: object, provider: str) -> dict[str, Any]:
    said = field_validation.mapping("config.network", value)
    mode = field_validation.one_of("config.network.mode", said.get("mode", "deny-all"), _MODES)
    lists = {
        name: field_validation.texts(f"config.network.{name}", said[name])
        for name in ("allowDomains", "allowCidrs")
        if name in said
    }
    if lists and mode != "restricted":
        raise ValidationError(f"config.network.{min(lists)} needs config.network.mode restricted")
    if mode == "restricted":
        raise ValidationError(
            f"config.network.mode restricted cannot be enforced by provider {provider}"
        )
    return {"mode": mode}


def _runtimes(value: object, provider: str) -> list[str]:
    fits = isinstance(value, list) and value and all(each in RUNTIMES for each in value)
    if not fits or not isinstance(value, list):
        choices = ", ".join(RUNTIMES)
        raise ValidationError(f"config.runtimes must be a non-empty array of: {choices}")
    return list(dict.fromkeys(value))


def _timeout(value: object, provider: str) -> int:
    return field_validation.whole("config.timeout", value, _MOST_SECONDS.get(provider, LONGEST_RUN))


def _memory(value: object, provider: str) -> int:
    return field_validation.whole(
        "config.memoryLimit", value, _MOST_MEMORY.get(provider, LARGEST_MEMORY)
    )


def _output(value: object, provider: str) -> int:
    return field_validation.whole("config.outputLimitBytes", value, LARGEST_OUTPUT)


def _variables(value: object, provider: str) -> dict[str, str]:
    fits = isinstance(value, Mapping) and all(isinstance(each, str) for each in value.values())
    if not fits or not isinstance(value, Mapping):
        raise ValidationError("config.envVars must be an object with string values")
    if not all(_VARIABLE.fullmatch(name) for name in value):
        raise ValidationError(
            "config.envVars must be named by letters, digits and _, no digit first"
        )
    if any("\0" in each for each in value.values()):
        raise ValidationError(
            "config.envVars must be an object with string values that hold no NUL"
        )
    return dict(value)


def _options(value: object, provider: str) -> dict[str, Any]:
    said = field_validation.mapping("config.options", value)
    if refused := sorted(_NOT_FOR_TENANTS.get(provider, frozenset()) & set(said)):
        raise ValidationError(f"config.options.{refused[0]} is not allowed for provider {provider}")
    return dict(said)


def _persistent(value: object, provider: str) -> bool:
    kept = field_validation.boolean("config.persistent", value)
    if kept and provider == "lambda":
        raise ValidationError("config.persistent is not supported by provider lambda")
    return kept


def _lifecycle(value: object, provider: str) -> dict[str, int]:
    said = field_validation.mapping("config.lifecycle", value)
    return {
        name: field_validation.whole(f"config.lifecycle.{name}", said[name], most)
        for name, most in LONGEST.items()
        if name in said
    }


_CHECKS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "internet": _internet,
    "network": _network,
    "runtimes": _runtimes,
    "timeout": _timeout,
    "memoryLimit": _memory,
    "outputLimitBytes": _output,
    "envVars": _variables,
    "options": _options,
    "persistent": _persistent,
    "lifecycle": _lifecycle,
}


def _check_network(found: Mapping[str, Any]) -> None:
    both = "internet" in found and "network" in found
    if both and found["internet"] != (found["network"]["mode"] == "allow-all"):
        raise ValidationError("config.internet and config.network contradict each other")


def _check_persistence(found: Mapping[str, Any]) -> None:
    if "lifecycle" in found and not found.get("persistent"):
        raise ValidationError("config.lifecycle needs config.persistent true")


def _check_options(found: Mapping[str, Any]) -> None:
    options = found.get("options", {})
    named = [name for name in _DISK if name in options]
    persistent = found["provider"] == "kubernetes" and found.get("persistent")
    if named and not persistent:
        raise ValidationError(f"config.options.{named[0]} needs a persistent kubernetes sandbox")
    if "persistentDiskGb" in named:
        size = options["persistentDiskGb"]
        field_validation.whole("config.options.persistentDiskGb", size, _LARGEST_DISK)


def wants_network(config: Mapping[str, Any]) -> bool:
    return config.get("internet") is True or config.get("network") == {"mode": "allow-all"}


def rewritten(config: Mapping[str, Any], become: Become) -> dict[str, Any]:
    """The same config with every secret in it turned into something else.

    Secret are the values of all variables, and of options whatever lies under a name that says so.
    """
    result = dict(config)
    for name, secret in (("envVars", True), ("options", False)):
        if name in result:
            result[name] = _rewritten(result[name], (name,), secret, become)
    return result


def _rewritten(value: Any, place: Place, secret: bool, become: Become) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _rewritten(inner, (*place, key), secret or bool(_SECRET.search(key)), become)
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [_rewritten(each, (*place, n), secret, become) for n, each in enumerate(value)]
    return become(place, value) if secret and isinstance(value, str) else value


def masked(config: Mapping[str, Any]) -> dict[str, Any]:
    """As it is shown."""
    return rewritten(config, lambda place, value: MASK)


def unmasked(config: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """With the secrets in place that were kept, where a mask was given for them.

    Raises Malformed where there is none to keep.
    """

    def become(place: Place, value: str) -> str:
        if value != MASK:
            return value
        kept = _found(stored, place)
        if not isinstance(kept, str):
            where = ".".join(map(str, place))
            raise ValidationError(f"config.{where} has no stored value that {MASK} could stand for")
        return kept

    return rewritten(config, become)


def _found(config: Any, place: Place) -> Any:
    for step in place:
        try:
            config = config[step]
        except (KeyError, IndexError, TypeError):
            return None
    return config
