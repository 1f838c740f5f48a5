"""Validation of sandbox configurations and masking of their secrets."""

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
"""Shown instead of a secret; when sent back, it keeps the stored value."""

DEFAULT_TIMEOUT_SECONDS: Final = 30
DEFAULT_OUTPUT_BYTES: Final = 65_536
_MAX_TIMEOUT_BY_PROVIDER: Final = {"lambda": 300}
_MAX_MEMORY_MB_BY_PROVIDER: Final = {"lambda": 1024}
MAX_TIMEOUT_SECONDS: Final = 600
MAX_MEMORY_MB: Final = 1_048_576
MAX_OUTPUT_BYTES: Final = 262_144
MAX_LIFECYCLE_SECONDS: Final = {"idleTimeoutSeconds": 604_800, "maxLifetimeSeconds": 2_592_000}
_MAX_DISK_GB: Final = 200

_NETWORK_MODES: Final = ("allow-all", "deny-all", "restricted")
_FORBIDDEN_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "docker": frozenset({"host", "privileged", "volumes", "binds", "mounts", "devices"}),
    "lambda": frozenset({"functionNames"}),
    "kubernetes": frozenset(
        {"kubeconfig", "kubeconfigSsmParam", "namespace", "image"}
        | {"serviceAccountName", "imagePullSecrets"}
    ),
}
_DISK_OPTIONS: Final = ("persistentDiskGb", "persistentHome", "storageClass")
_SECRET_NAME: Final = re.compile(
    r"secret|token|private_?key|credential|kubeconfig|certificate|access_?key|\Aapi_?key\Z",
    re.IGNORECASE,
)
VARIABLE_PATTERN: Final = "[A-Za-z_][A-Za-z0-9_]*"
_VARIABLE_REGEX: Final = re.compile(VARIABLE_PATTERN)

ConfigPath = tuple[str | int, ...]
"""Path of a value in a config."""
SecretTransform = Callable[[ConfigPath, str], str]


def parse_sandbox_config(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Validate a config and add defaults that are always stored.

    Raises ValidationError. Unknown fields are dropped.
    """
    provider = field_validation.require_choice(
        "config.provider", raw.get("provider", "local"), PROVIDERS
    )
    mode = raw.get("permissionMode", PermissionMode.ASK)
    modes = [str(item) for item in PermissionMode]
    config: dict[str, Any] = {
        "provider": provider,
        "permissionMode": field_validation.require_choice("config.permissionMode", mode, modes),
    }
    for name, check in _CHECKS.items():
        if name in raw:
            config[name] = check(raw[name], provider)
    _check_network(config)
    _check_persistence(config)
    _check_options(config)
    return config


def _parse_internet(value: object, provider: str) -> bool:
    return field_validation.require_boolean("config.internet", value)


def _parse_network(value: object, provider: str) -> dict[str, Any]:
    network = field_validation.require_mapping("config.network", value)
    mode = field_validation.require_choice(
        "config.network.mode", network.get("mode", "deny-all"), _NETWORK_MODES
    )
    lists = {
        name: field_validation.require_strings(f"config.network.{name}", network[name])
        for name in ("allowDomains", "allowCidrs")
        if name in network
    }
    if lists and mode != "restricted":
        raise ValidationError(f"config.network.{min(lists)} needs config.network.mode restricted")
    if mode == "restricted":
        raise ValidationError(
            f"config.network.mode restricted cannot be enforced by provider {provider}"
        )
    return {"mode": mode}


def _parse_runtimes(value: object, provider: str) -> list[str]:
    is_valid = isinstance(value, list) and value and all(runtime in RUNTIMES for runtime in value)
    if not is_valid or not isinstance(value, list):
        choices = ", ".join(RUNTIMES)
        raise ValidationError(f"config.runtimes must be a non-empty array of: {choices}")
    return list(dict.fromkeys(value))


def _parse_timeout(value: object, provider: str) -> int:
    return field_validation.require_positive_integer(
        "config.timeout", value, _MAX_TIMEOUT_BY_PROVIDER.get(provider, MAX_TIMEOUT_SECONDS)
    )


def _parse_memory(value: object, provider: str) -> int:
    return field_validation.require_positive_integer(
        "config.memoryLimit", value, _MAX_MEMORY_MB_BY_PROVIDER.get(provider, MAX_MEMORY_MB)
    )


def _parse_output_limit(value: object, provider: str) -> int:
    return field_validation.require_positive_integer(
        "config.outputLimitBytes", value, MAX_OUTPUT_BYTES
    )


def _parse_variables(value: object, provider: str) -> dict[str, str]:
    is_valid = isinstance(value, Mapping) and all(isinstance(item, str) for item in value.values())
    if not is_valid or not isinstance(value, Mapping):
        raise ValidationError("config.envVars must be an object with string values")
    if not all(_VARIABLE_REGEX.fullmatch(name) for name in value):
        raise ValidationError(
            "config.envVars must be named by letters, digits and _, no digit first"
        )
    if any("\0" in item for item in value.values()):
        raise ValidationError(
            "config.envVars must be an object with string values that hold no NUL"
        )
    return dict(value)


def _parse_options(value: object, provider: str) -> dict[str, Any]:
    options = field_validation.require_mapping("config.options", value)
    if forbidden := sorted(_FORBIDDEN_OPTIONS.get(provider, frozenset()) & set(options)):
        raise ValidationError(
            f"config.options.{forbidden[0]} is not allowed for provider {provider}"
        )
    return dict(options)


def _parse_persistent(value: object, provider: str) -> bool:
    persistent = field_validation.require_boolean("config.persistent", value)
    if persistent and provider == "lambda":
        raise ValidationError("config.persistent is not supported by provider lambda")
    return persistent


def _parse_lifecycle(value: object, provider: str) -> dict[str, int]:
    lifecycle = field_validation.require_mapping("config.lifecycle", value)
    return {
        name: field_validation.require_positive_integer(
            f"config.lifecycle.{name}", lifecycle[name], maximum
        )
        for name, maximum in MAX_LIFECYCLE_SECONDS.items()
        if name in lifecycle
    }


_CHECKS: Final[Mapping[str, Callable[[object, str], Any]]] = {
    "internet": _parse_internet,
    "network": _parse_network,
    "runtimes": _parse_runtimes,
    "timeout": _parse_timeout,
    "memoryLimit": _parse_memory,
    "outputLimitBytes": _parse_output_limit,
    "envVars": _parse_variables,
    "options": _parse_options,
    "persistent": _parse_persistent,
    "lifecycle": _parse_lifecycle,
}


def _check_network(config: Mapping[str, Any]) -> None:
    both = "internet" in config and "network" in config
    if both and config["internet"] != (config["network"]["mode"] == "allow-all"):
        raise ValidationError("config.internet and config.network contradict each other")


def _check_persistence(config: Mapping[str, Any]) -> None:
    if "lifecycle" in config and not config.get("persistent"):
        raise ValidationError("config.lifecycle needs config.persistent true")


def _check_options(config: Mapping[str, Any]) -> None:
    options = config.get("options", {})
    disk_options = [name for name in _DISK_OPTIONS if name in options]
    persistent = config["provider"] == "kubernetes" and config.get("persistent")
    if disk_options and not persistent:
        raise ValidationError(
            f"config.options.{disk_options[0]} needs a persistent kubernetes sandbox"
        )
    if "persistentDiskGb" in disk_options:
        size = options["persistentDiskGb"]
        field_validation.require_positive_integer(
            "config.options.persistentDiskGb", size, _MAX_DISK_GB
        )


def has_network_access(config: Mapping[str, Any]) -> bool:
    return config.get("internet") is True or config.get("network") == {"mode": "allow-all"}


def map_secrets(config: Mapping[str, Any], transform: SecretTransform) -> dict[str, Any]:
    """Copy a config with every secret transformed.

    Secrets are all environment variables, and options below a name that matches _SECRET_NAME.
    """
    result = dict(config)
    for name, secret in (("envVars", True), ("options", False)):
        if name in result:
            result[name] = _map_value(result[name], (name,), secret, transform)
    return result


def _map_value(
    value: Any, config_path: ConfigPath, secret: bool, transform: SecretTransform
) -> Any:
    if isinstance(value, Mapping):
        return {
            key: _map_value(
                inner, (*config_path, key), secret or bool(_SECRET_NAME.search(key)), transform
            )
            for key, inner in value.items()
        }
    if isinstance(value, list):
        return [
            _map_value(item, (*config_path, n), secret, transform) for n, item in enumerate(value)
        ]
    return transform(config_path, value) if secret and isinstance(value, str) else value


def mask_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """Copy a config with every secret replaced by MASK."""
    return map_secrets(config, lambda config_path, value: MASK)


def restore_secrets(config: Mapping[str, Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    """Replace masks by the stored secrets.

    Raises ValidationError if nothing is stored there.
    """

    def restore(config_path: ConfigPath, value: str) -> str:
        if value != MASK:
            return value
        current = _lookup(stored, config_path)
        if not isinstance(current, str):
            field_name = ".".join(map(str, config_path))
            raise ValidationError(f"config.{field_name} is {MASK}, but no value is stored")
        return current

    return map_secrets(config, restore)


def _lookup(config: Any, config_path: ConfigPath) -> Any:
    for step in config_path:
        try:
            config = config[step]
        except (KeyError, IndexError, TypeError):
            return None
    return config
