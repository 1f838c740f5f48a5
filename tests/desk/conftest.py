"""A real server on a real store, and people in front of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, expect
from tests.desk import browsing
from tests.desk.browsing import Seat
from tests.support.server_process import TOKEN, Live, serving

Seating = Callable[..., Seat]
expect.set_options(timeout=30_000)


@pytest.fixture(scope="session")
def resting() -> Iterator[browsing.Chrome]:
    with browsing.chrome() as started:
        yield started


@pytest.fixture(scope="module")
def chrome(resting: browsing.Chrome) -> Iterator[Browser]:
    """The browser of the process, awake for the tests of a file."""
    with resting.in_use() as browser:
        yield browser


@pytest.fixture(scope="session")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One server for all tests of a process: each makes agents and templates of its own."""
    with serving(tmp_path_factory.mktemp("desk"), webhooks_private="true") as server:
        yield server


@dataclass
class Office:
    """The owner's way to set a scene, over the same API as anybody's."""

    http: httpx.Client
    mark: str
    """Tells what this test made from what others did."""

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        answer = self.http.request(method, path, json=body, headers=headers)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json() if answer.content else None

    def template(self, name: str = "Support", **files: str) -> Any:
        made = self.ask(
            "POST", "/v1/templates", {"slug": f"{name.lower()}-{self.mark}", "name": name}
        )
        for path, content in files.items():
            self.put(f"/v1/templates/{made['id']}", path.replace("_md", ".md"), content)
        return made

    def agent(self, name: str = "Ada", template: Any = None, **more: Any) -> Any:
        slug = f"{name.lower().replace(' ', '-')}-{secrets.token_hex(3)}"
        body = {"slug": slug, "name": name, "templateId": template and template["id"], **more}
        return self.ask("POST", "/v1/agents", body)

    def person(self, name: str, role: str = "member", **more: Any) -> Any:
        email = f"{name.lower().replace(' ', '.')}.{secrets.token_hex(3)}@example.com"
        return self.ask("POST", "/v1/people", {"name": name, "email": email, "role": role, **more})

    def token_of(self, person: Any) -> str:
        body = {"name": "browser tests", "kind": "person", "personId": person["id"]}
        return str(self.ask("POST", "/v1/keys", body)["key"])

    def put(self, place: str, path: str, content: str, reason: str = "") -> Any:
        body = {"content": content}
        if place.startswith("/v1/agents"):
            body |= {"acceptTemplateUpdate": True}  # type: ignore[dict-item]
        headers = {"Carrel-Reason": reason} if reason else {}
        return self.ask("PUT", f"{place}/files/{path}", body, **headers)


@pytest.fixture
def office(live: Live) -> Iterator[Office]:
    head = {"Authorization": f"Bearer {TOKEN}"}
    with httpx.Client(base_url=live.url, headers=head, timeout=30) as http:
        yield Office(http, secrets.token_hex(3))


@pytest.fixture
def seat(chrome: Browser, live: Live) -> Iterator[Seating]:
    """Seats somebody at the desk. Whatever broke behind a screen fails the test at its end."""
    with ExitStack() as stack:
        seats: list[Seat] = []

        def take(token: str = TOKEN, size: tuple[int, int] = browsing.WIDE) -> Seat:
            seats.append(stack.enter_context(browsing.seated(chrome, live, token, size)))
            return seats[-1]

        yield take
        wrong = [each for seat in seats for each in seat.wrong]
        assert not wrong, "\n".join(wrong)
