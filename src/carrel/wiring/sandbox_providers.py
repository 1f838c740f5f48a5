"""Builds the configured remote sandbox providers from the settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from carrel.ports.sandbox import Sandbox
from carrel.settings import PREFIX, Settings, SettingsError


def remote_sandboxes(settings: Settings) -> Mapping[str, Sandbox]:
    """Return the configured providers by name. Raises SettingsError."""
    return {
        name: _create_provider(settings, name, key, make)
        for name, (keys, make) in _PROVIDERS.items()
        if (key := next(filter(lambda name: getattr(settings, name), keys), None))
    }


def _create_provider(
    settings: Settings, name: str, key: str, make: Callable[[Settings], Sandbox]
) -> Sandbox:
    try:
        return make(settings)
    except ImportError:
        raise SettingsError(f"{PREFIX}{key.upper()} needs the extra `{name}`") from None


def _split_list(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",")) or ("",)


def _docker(settings: Settings) -> Sandbox:
    from carrel.adapters.sandbox.docker import DockerHost, DockerSandbox  # noqa: PLC0415 - an extra

    return DockerSandbox(
        DockerHost(
            url=settings.docker_host,
            images=_split_list(settings.docker_images),
            certificates=settings.docker_certificates,
            runtime=settings.docker_runtime,
        )
    )


def _lambda(settings: Settings) -> Sandbox:
    from carrel.adapters.sandbox.aws_lambda import LambdaFunctions, LambdaSandbox  # noqa: PLC0415 - same

    return LambdaSandbox(
        LambdaFunctions(
            without_network=settings.lambda_function,
            with_network=settings.lambda_online_function,
            memory_mb=settings.lambda_memory_mb,
            region=settings.lambda_region,
            endpoint=settings.lambda_endpoint,
            access_key=settings.lambda_access_key,
            secret_key=settings.lambda_secret_key,
        )
    )


def _kubernetes(settings: Settings) -> Sandbox:
    from carrel.adapters.sandbox.kubernetes import KubernetesCluster, KubernetesSandbox  # noqa: PLC0415 - same

    return KubernetesSandbox(
        KubernetesCluster(
            config=settings.kubernetes_config,
            image=settings.kubernetes_image,
            without_network=settings.kubernetes_namespace,
            with_network=settings.kubernetes_online_namespace,
            runtime_class=settings.kubernetes_runtime_class,
        )
    )


def _e2b(settings: Settings) -> Sandbox:
    from carrel.adapters.sandbox.e2b import E2BAccount, E2BSandbox  # noqa: PLC0415 - same

    return E2BSandbox(
        E2BAccount(
            api_key=settings.e2b_api_key,
            templates=_split_list(settings.e2b_templates),
            memory_mb=settings.e2b_memory_mb,
            domain=settings.e2b_domain,
        )
    )


def _daytona(settings: Settings) -> Sandbox:
    from carrel.adapters.sandbox.daytona import DaytonaAccount, DaytonaSandbox  # noqa: PLC0415 - same

    return DaytonaSandbox(
        DaytonaAccount(
            api_key=settings.daytona_api_key,
            api_url=settings.daytona_api_url,
            snapshots=_split_list(settings.daytona_snapshots),
            memory_mb=settings.daytona_memory_mb,
            target=settings.daytona_target,
        )
    )


_PROVIDERS: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Settings], Sandbox]]]] = {
    "docker": (("docker_host",), _docker),
    "lambda": (("lambda_function", "lambda_online_function"), _lambda),
    "kubernetes": (("kubernetes_config",), _kubernetes),
    "e2b": (("e2b_api_key",), _e2b),
    "daytona": (("daytona_api_key",), _daytona),
}
"""Factory of each provider, with the settings of which one enables it."""
