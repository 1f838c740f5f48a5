"""Fixtures of the browser tests: a browser, a live server and signed-in pages."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path as File
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.conftest import run
from tests.support.fleet_store import build_fleet, copy_fleet
from tests.support.server_process import TOKEN, ServerProcess, serving
from tests.ui.browser import WIDE, BrowserDriver, SignedInPage, sign_in, start_browser

OpenPage = Callable[..., SignedInPage]
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def browser_driver() -> Iterator[BrowserDriver]:
    with start_browser() as driver:
        yield driver


@pytest.fixture(scope="module")
def browser(browser_driver: BrowserDriver) -> Iterator[Browser]:
    """The browser of the process, in use for the tests of one file."""
    with browser_driver.use() as browser:
        yield browser


@pytest.fixture(scope="session")
def live_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server for all tests of a process; each test creates its own agents and templates."""
    with serving(tmp_path_factory.mktemp("ui"), webhooks_private="true") as server:
        yield server


@pytest.fixture(scope="session")
def fleet_data(tmp_path_factory: pytest.TempPathFactory) -> File:
    """Data directory of the fleet, built once per process; servers get copies of it."""
    data = tmp_path_factory.mktemp("fleet")
    run(build_fleet(data))
    return data


@pytest.fixture(scope="session")
def fleet_server(
    fleet_data: File, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    """One server of the fleet for all tests of a process that change nothing in it."""
    with serving(copy_fleet(fleet_data, tmp_path_factory.mktemp("served") / "fleet")) as server:
        yield server


@pytest.fixture
def own_fleet_server(fleet_data: File, tmp_path: File) -> Iterator[ServerProcess]:
    """A server with a fleet of its own, for a test that changes it."""
    with serving(copy_fleet(fleet_data, tmp_path / "fleet")) as server:
        yield server


@dataclass
class ApiSetup:
    """Creates test data through the API, as the owner."""

    http: httpx.Client
    suffix: str
    """Distinguishes the data of this test from that of others."""

    def request(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        response = self.http.request(method, path, json=body, headers=headers)
        assert response.is_success, f"{method} {path}: {response.status_code} {response.text}"
        return response.json() if response.content else None

    def create_template(self, name: str = "Support", **files: str) -> Any:
        slug = f"{name.lower()}-{self.suffix}"
        template = self.request("POST", "/v1/templates", {"slug": slug, "name": name})
        for path, content in files.items():
            self.put_file(f"/v1/templates/{template['id']}", path.replace("_md", ".md"), content)
        return template

    def create_agent(self, name: str = "Ada", template: Any = None, **fields: Any) -> Any:
        slug = f"{name.lower().replace(' ', '-')}-{secrets.token_hex(3)}"
        body = {"slug": slug, "name": name, "templateId": template and template["id"], **fields}
        return self.request("POST", "/v1/agents", body)

    def create_person(self, name: str, role: str = "member", **fields: Any) -> Any:
        email = f"{name.lower().replace(' ', '.')}.{secrets.token_hex(3)}@example.com"
        body = {"name": name, "email": email, "role": role, **fields}
        return self.request("POST", "/v1/people", body)

    def create_token(self, person: Any) -> str:
        code = self.request("POST", f"/v1/people/{person['id']}/invite")["code"]
        return str(self.request("POST", "/v1/sign-in", {"code": code})["token"])

    def put_file(self, scope_url: str, path: str, content: str, reason: str = "") -> Any:
        body = {"content": content}
        if scope_url.startswith("/v1/agents"):
            body |= {"acceptTemplateUpdate": True}  # type: ignore[dict-item]
        headers = {"Carrel-Reason": reason} if reason else {}
        return self.request("PUT", f"{scope_url}/files/{path}", body, **headers)


@pytest.fixture
def api_setup(live_server: ServerProcess) -> Iterator[ApiSetup]:
    headers = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=live_server.url, headers=headers, timeout=30) as http:
        yield ApiSetup(http, secrets.token_hex(3))


@pytest.fixture
def signed_in_page(browser: Browser, live_server: ServerProcess) -> Iterator[OpenPage]:
    """Opens signed-in pages. Errors that they recorded fail the test at its end."""
    with ExitStack() as stack:
        pages: list[SignedInPage] = []

        def open_page(token: str = TOKEN, size: tuple[int, int] = WIDE) -> SignedInPage:
            pages.append(stack.enter_context(sign_in(browser, live_server, token, size)))
            return pages[-1]

        yield open_page
        errors = [error for page in pages for error in page.errors]
        assert not errors, "\n".join(errors)
