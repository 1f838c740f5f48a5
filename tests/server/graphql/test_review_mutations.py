"""Pins and their review over GraphQL."""

from __future__ import annotations

import httpx
import pytest
from tests.support.full_app import FullApp
from tests.support.graphql_client import (
    GraphqlTenant,
    create,
    create_member,
    execute_query,
    query_data,
    query_error_code,
    sha,
    write,
)

from carrel.core.access import Permission

pytestmark = pytest.mark.anyio

STATUS = """query($agent: ID!) { agentPinStatus(agentId: $agent) {
  filename path folderPath pinnedSha latestSha updateAvailable newlyOffered
  pinnedContent latestContent overridden } }"""
ACCEPT = """mutation($agent: ID!, $file: String!, $sha: String, $key: String) {
  acceptTemplateUpdate(agentId: $agent, filename: $file, latestSha: $sha, idempotencyKey: $key) {
    id slug pins { path pinnedSha updateAvailable overridden } } }"""
BULK = """mutation($template: ID!, $file: String!, $tenant: ID!, $sha: String) {
  acceptTemplateUpdateBulk(
    templateId: $template, filename: $file, tenantId: $tenant, latestSha: $sha
  ) { accepted failed results { agentId success error } } }"""
ROLL_BACK = """mutation($template: ID!, $file: String!, $sha: String!) {
  rollBackTemplateUpdateBulk(templateId: $template, filename: $file, acceptedSha: $sha) {
    rolledBack failed results { agentId success error } } }"""
GUARDRAILS = "GUARDRAILS.md"
RULES = f"/v1/templates/sales/files/{GUARDRAILS}"
OWN = f"/v1/agents/marco/files/{GUARDRAILS}"


async def text(client: httpx.AsyncClient, url: str = OWN) -> str:
    content: str = (await client.get(url)).json()["content"]
    return content


async def test_the_three_pinned_files_are_always_listed_first(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await write(owner, RULES, "be better")
    rows = (await query_data(owner, STATUS, agent="marco"))["agentPinStatus"]
    assert [row["filename"] for row in rows[:3]] == [
        GUARDRAILS,
        "PLATFORM.md",
        "CAPABILITIES.md",
    ]
    first = rows[0]
    assert (first["pinnedSha"], first["latestSha"]) == (
        f"sha256:{sha('be good')}",
        f"sha256:{sha('be better')}",
    )
    assert first["updateAvailable"] is True
    assert (first["pinnedContent"], first["latestContent"]) == ("be good", "be better")
    assert (first["path"], first["folderPath"]) == (GUARDRAILS, None)


async def test_nested_pinned_files_are_listed_on_request(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    rule = {"classes": [{"pattern": "policies/**", "class": "pinned"}]}
    assert (await owner.put("/v1/policy", json=rule)).status_code == 200
    await write(owner, "/v1/templates/sales/files/policies/a.md", "one")
    plain = (await query_data(owner, STATUS, agent="marco"))["agentPinStatus"]
    assert "policies/a.md" not in [row["path"] for row in plain]
    query = STATUS.replace("agentId: $agent", "agentId: $agent, includeNested: true")
    nested = (await query_data(owner, query, agent="marco"))["agentPinStatus"]
    [pin] = [row for row in nested if row["path"] == "policies/a.md"]
    assert (pin["filename"], pin["folderPath"]) == ("a.md", "policies")
    assert (pin["newlyOffered"], pin["updateAvailable"]) == (True, False)
    assert (pin["pinnedSha"], pin["pinnedContent"], pin["latestContent"]) == (
        *(None, None),
        "one",
    )


async def test_accepting_a_stale_digest_is_a_conflict(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await write(owner, RULES, "be better")
    await write(owner, RULES, "be best")
    stale = {"agent": "marco", "file": GUARDRAILS, "sha": sha("be better")}
    assert await query_error_code(owner, ACCEPT, **stale) == "CONFLICT"
    assert await text(owner) == "be good"
    done = await query_data(owner, ACCEPT, **{**stale, "sha": f"sha256:{sha('be best')}"})
    agent = done["acceptTemplateUpdate"]
    [pin] = [pin for pin in agent["pins"] if pin["path"] == GUARDRAILS]
    assert (agent["id"], pin["pinnedSha"]) == (sample.agent, f"sha256:{sha('be best')}")
    assert await text(owner) == "be best"


async def test_without_a_digest_nothing_is_accepted(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await write(owner, RULES, "be better")
    single = {"agent": sample.agent, "file": GUARDRAILS}
    all_of_them = {"template": "sales", "file": GUARDRAILS, "tenant": sample.tenant}
    for document, variables in ((ACCEPT, single), (BULK, all_of_them)):
        for digest in ({}, {"sha": None}, {"sha": ""}):
            answer = await execute_query(owner, document, **variables, **digest)
            [error] = answer["errors"]
            assert error["extensions"]["code"] == "BAD_USER_INPUT"
            assert "latestSha" in error["message"]
    assert await text(owner) == "be good"


async def test_what_was_accepted_for_all_is_rolled_back_for_all(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    bella = await create(owner, "/v1/agents", slug="bella", name="B", templateId="sales")
    await write(owner, RULES, "be better")
    variables = {"template": "sales", "file": GUARDRAILS, "sha": sha("be better")}
    await query_data(owner, BULK, tenant=sample.tenant, **variables)
    await write(owner, RULES, "be best")
    await query_data(owner, ACCEPT, agent="bella", file=GUARDRAILS, sha=sha("be best"))
    done = (await query_data(owner, ROLL_BACK, **variables))["rollBackTemplateUpdateBulk"]
    assert (done["rolledBack"], done["failed"]) == (1, 1)
    results = {row["agentId"]: row["success"] for row in done["results"]}
    assert results == {sample.agent: True, bella: False}
    assert await text(owner) == "be good"
    assert await text(owner, f"/v1/agents/bella/files/{GUARDRAILS}") == "be best"
    for wrong, code in (({"sha": "x"}, "BAD_USER_INPUT"), ({"template": "no"}, "NOT_FOUND")):
        assert await query_error_code(owner, ROLL_BACK, **{**variables, **wrong}) == code
    member = await create_member(server, owner)
    assert await query_error_code(member, ROLL_BACK, **variables) == "FORBIDDEN"


async def test_accepting_an_update_removes_the_override(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    await write(owner, RULES, "be better")
    for mine in ("mine", "mine again"):
        await write(owner, OWN, mine, acceptTemplateUpdate=True)
        await query_data(owner, ACCEPT, agent=sample.agent, file=GUARDRAILS, sha=sha("be better"))
        assert await text(owner) == "be better"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"file": "SOUL.md"}, "BAD_USER_INPUT"),
        ({"file": "../GUARDRAILS.md"}, "BAD_USER_INPUT"),
        ({"sha": "abc"}, "BAD_USER_INPUT"),
        ({"key": ""}, "BAD_USER_INPUT"),
        ({"agent": "missing"}, "NOT_FOUND"),
        ({"agent": "no\u0000body"}, "NOT_FOUND"),
    ],
)
async def test_an_invalid_accept_is_refused(
    owner: httpx.AsyncClient, sample: GraphqlTenant, change: dict[str, str], code: str
) -> None:
    variables = {"agent": "marco", "file": GUARDRAILS, "sha": sha("be good"), **change}
    assert await query_error_code(owner, ACCEPT, **variables) == code


async def test_accepting_a_missing_file_is_not_found(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    rule = {"classes": [{"pattern": "rules.md", "class": "pinned"}]}
    assert (await owner.put("/v1/policy", json=rule)).status_code == 200
    variables = {"agent": "marco", "file": "rules.md", "sha": sha("x")}
    assert await query_error_code(owner, ACCEPT, **variables) == "NOT_FOUND"
    variables = {"template": "sales", "file": "rules.md", "tenant": sample.tenant, "sha": sha("x")}
    assert await query_error_code(owner, BULK, **variables) == "NOT_FOUND"


async def test_accepting_needs_a_person_with_an_admin_role(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    variables = {"agent": "marco", "file": GUARDRAILS, "sha": sha("be good")}
    bulk = {"template": "sales", "file": GUARDRAILS, "tenant": sample.tenant, "sha": sha("be good")}
    machine = await server.key(owner, *Permission)
    member = await create_member(server, owner)
    for client in (member, machine):
        assert await query_error_code(client, ACCEPT, **variables) == "FORBIDDEN"
        assert (
            await query_error_code(client, ACCEPT, **{**variables, "agent": "missing"})
            == "FORBIDDEN"
        )
        assert await query_error_code(client, BULK, **bulk) == "FORBIDDEN"
    assert len((await query_data(machine, STATUS, agent="marco"))["agentPinStatus"]) >= 3
    assert await query_error_code(member, STATUS, agent="marco") == "FORBIDDEN"
    admin = await create_member(server, owner, "admin")
    assert (await query_data(admin, ACCEPT, **variables))["acceptTemplateUpdate"][
        "id"
    ] == sample.agent


async def test_a_repeated_idempotency_key_accepts_once(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    variables = {"agent": "marco", "file": GUARDRAILS, "key": "once", "sha": sha("be better")}
    await write(owner, RULES, "be better")
    await query_data(owner, ACCEPT, **variables)
    await write(owner, RULES, "be best")
    again = await query_data(owner, ACCEPT, **variables)
    assert again["acceptTemplateUpdate"]["id"] == sample.agent
    assert await text(owner) == "be better"
    other = {**variables, "file": "PLATFORM.md"}
    assert await query_error_code(owner, ACCEPT, **other) == "CONFLICT"


async def test_a_refused_accept_may_be_retried_with_its_key(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    variables = {"agent": "marco", "file": GUARDRAILS, "key": "again", "sha": sha("be better")}
    assert await query_error_code(owner, ACCEPT, **variables) == "CONFLICT"
    await write(owner, RULES, "be better")
    assert (await query_data(owner, ACCEPT, **variables))["acceptTemplateUpdate"][
        "id"
    ] == sample.agent


async def test_a_bulk_accept_reports_every_agent(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    polo = await create(owner, "/v1/agents", slug="polo", name="Polo", templateId="sales")
    await write(owner, RULES, "be better")
    variables = {"template": "sales", "file": GUARDRAILS, "tenant": sample.tenant}
    stale = (await query_data(owner, BULK, **variables, sha=sha("be good")))[
        "acceptTemplateUpdateBulk"
    ]
    assert (stale["accepted"], stale["failed"]) == (0, 2)
    assert all("review" in entry["error"] for entry in stale["results"])
    variables["sha"] = sha("be better")
    done = (await query_data(owner, BULK, **variables))["acceptTemplateUpdateBulk"]
    entry = {"success": True, "error": None}
    ids = sorted([sample.agent, polo])
    assert done == {"accepted": 2, "failed": 0, "results": [{"agentId": id, **entry} for id in ids]}
    again = (await query_data(owner, BULK, **variables))["acceptTemplateUpdateBulk"]
    assert again == done
    await create(owner, "/v1/templates", slug="idle", name="Idle")
    await write(owner, f"/v1/templates/idle/files/{GUARDRAILS}", "x")
    idle = (await query_data(owner, BULK, **{**variables, "template": "idle"}))[
        "acceptTemplateUpdateBulk"
    ]
    assert idle == {"accepted": 0, "failed": 0, "results": []}


async def test_a_bulk_accept_for_another_tenant_is_not_found(
    server: FullApp, owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    other = await server.owner("globex")
    theirs = (await other.get("/v1/tenants/me")).json()["id"]
    for variables in (
        {"template": "sales", "tenant": theirs},
        {"template": "missing", "tenant": sample.tenant},
    ):
        variables |= {"file": GUARDRAILS, "sha": sha("be good")}
        assert await query_error_code(owner, BULK, **variables) == "NOT_FOUND"
    for tenant in (theirs, sample.tenant):
        variables = {"template": sample.template, "tenant": tenant, "sha": sha("be good")}
        assert await query_error_code(other, BULK, file=GUARDRAILS, **variables) == "NOT_FOUND"


async def test_a_pin_is_rolled_back(owner: httpx.AsyncClient, sample: GraphqlTenant) -> None:
    await write(owner, RULES, "be better")
    await query_data(owner, ACCEPT, agent="marco", file=GUARDRAILS, sha=sha("be better"))
    back = 'mutation { rollBackPin(agentId: "marco", filename: "GUARDRAILS.md") { id } }'
    assert (await query_data(owner, back))["rollBackPin"] == {"id": sample.agent}
    assert await text(owner) == "be good"
    answer = await execute_query(owner, back.replace("filename", "version: 99, filename"))
    assert answer["data"] == {"rollBackPin": None}
    assert answer["errors"][0]["extensions"]["code"] == "NOT_FOUND"


DETAILS = """{ agentPinStatus(agentId: "marco") { path pinnedTokens latestTokens latestSource
  latestVersion latestAuthor latestReason latestAt } }"""


async def test_a_review_has_author_reason_and_token_counts(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    url = "/v1/templates/sales/files/GUARDRAILS.md"
    reason = {"Carrel-Reason": "after the audit"}
    text = "be good, be careful, and ask before you spend anything"
    await owner.put(url, json={"content": text}, headers=reason)
    me = (await query_data(owner, "{ me { personId } }"))["me"]["personId"]
    by_path = {row["path"]: row for row in (await query_data(owner, DETAILS))["agentPinStatus"]}
    rows = (await owner.get("/v1/agents/marco/pins")).json()["items"]
    for path in ("GUARDRAILS.md", "PLATFORM.md"):
        [row] = [item for item in rows if item["path"] == path]
        assert {name: row[name] for name in by_path[path]} == by_path[path]
    rules, platform = by_path["GUARDRAILS.md"], by_path["PLATFORM.md"]
    assert (rules["latestSource"], rules["latestVersion"]) == ("template", 2)
    assert (rules["latestAuthor"], rules["latestReason"]) == (me, "after the audit")
    assert rules["latestAt"] == (await owner.get(url)).json()["updatedAt"]
    assert 0 < rules["pinnedTokens"] < rules["latestTokens"]
    assert (platform["latestSource"], platform["latestVersion"]) == ("defaults", 1)
    assert platform["pinnedTokens"] == platform["latestTokens"]


async def test_a_review_without_an_offer_has_no_details(
    owner: httpx.AsyncClient, sample: GraphqlTenant
) -> None:
    for layer in ("/v1/templates/sales", "/v1/defaults"):
        await owner.delete(f"{layer}/files/GUARDRAILS.md")
    [rules, *_] = (await query_data(owner, DETAILS))["agentPinStatus"]
    assert rules.pop("pinnedTokens") > 0
    assert rules.pop("path") == "GUARDRAILS.md"
    assert set(rules.values()) == {None}
    rows = (await owner.get("/v1/agents/marco/pins")).json()["items"]
    [row] = [item for item in rows if item["path"] == "GUARDRAILS.md"]
    assert {row[name] for name in rules} == {None}
