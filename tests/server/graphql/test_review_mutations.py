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
GUARDRAILS = "GUARDRAILS.md"
RULES = f"/v1/templates/sales/files/{GUARDRAILS}"
OWN = f"/v1/agents/marco/files/{GUARDRAILS}"


async def text(who: httpx.AsyncClient, where: str = OWN) -> str:
    found: str = (await who.get(where)).json()["content"]
    return found


async def test_the_three_always_come_in_their_order_whether_they_exist_or_not(
    owner: httpx.AsyncClient, desk: GraphqlTenant
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


async def test_what_a_policy_pins_in_folders_comes_where_it_is_asked_for(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    rule = {"classes": [{"pattern": "policies/**", "class": "pinned"}]}
    assert (await owner.put("/v1/policy", json=rule)).status_code == 200
    await write(owner, "/v1/templates/sales/files/policies/a.md", "one")
    plain = (await query_data(owner, STATUS, agent="marco"))["agentPinStatus"]
    assert "policies/a.md" not in [row["path"] for row in plain]
    query = STATUS.replace("agentId: $agent", "agentId: $agent, includeNested: true")
    nested = (await query_data(owner, query, agent="marco"))["agentPinStatus"]
    [found] = [row for row in nested if row["path"] == "policies/a.md"]
    assert (found["filename"], found["folderPath"]) == ("a.md", "policies")
    assert (found["newlyOffered"], found["updateAvailable"]) == (True, False)
    assert (found["pinnedSha"], found["pinnedContent"], found["latestContent"]) == (
        *(None, None),
        "one",
    )


async def test_accepting_binds_to_what_was_reviewed(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    await write(owner, RULES, "be better")
    await write(owner, RULES, "be best")
    stale = {"agent": "marco", "file": GUARDRAILS, "sha": sha("be better")}
    assert await query_error_code(owner, ACCEPT, **stale) == "CONFLICT"
    assert await text(owner) == "be good"
    done = await query_data(owner, ACCEPT, **{**stale, "sha": f"sha256:{sha('be best')}"})
    agent = done["acceptTemplateUpdate"]
    [pin] = [pin for pin in agent["pins"] if pin["path"] == GUARDRAILS]
    assert (agent["id"], pin["pinnedSha"]) == (desk.agent, f"sha256:{sha('be best')}")
    assert await text(owner) == "be best"


async def test_without_a_digest_nothing_is_accepted(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    await write(owner, RULES, "be better")
    one = {"agent": desk.agent, "file": GUARDRAILS}
    all_of_them = {"template": "sales", "file": GUARDRAILS, "tenant": desk.tenant}
    for document, asked in ((ACCEPT, one), (BULK, all_of_them)):
        for given in ({}, {"sha": None}, {"sha": ""}):
            answer = await execute_query(owner, document, **asked, **given)
            [error] = answer["errors"]
            assert error["extensions"]["code"] == "BAD_USER_INPUT"
            assert "latestSha" in error["message"]
    assert await text(owner) == "be good"


async def test_with_an_accept_an_override_goes(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    await write(owner, RULES, "be better")
    for mine in ("mine", "mine again"):
        await write(owner, OWN, mine, acceptTemplateUpdate=True)
        await query_data(owner, ACCEPT, agent=desk.agent, file=GUARDRAILS, sha=sha("be better"))
        assert await text(owner) == "be better"


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"file": "SOUL.md"}, "BAD_USER_INPUT"),
        ({"file": "../GUARDRAILS.md"}, "BAD_USER_INPUT"),
        ({"sha": "abc"}, "BAD_USER_INPUT"),
        ({"key": ""}, "BAD_USER_INPUT"),
        ({"agent": "nobody"}, "NOT_FOUND"),
        ({"agent": "no\u0000body"}, "NOT_FOUND"),
    ],
)
async def test_what_cannot_be_accepted_is_refused(
    owner: httpx.AsyncClient, desk: GraphqlTenant, asked: dict[str, str], code: str
) -> None:
    given = {"agent": "marco", "file": GUARDRAILS, "sha": sha("be good"), **asked}
    assert await query_error_code(owner, ACCEPT, **given) == code


async def test_nothing_to_accept_is_not_found(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    rule = {"classes": [{"pattern": "rules.md", "class": "pinned"}]}
    assert (await owner.put("/v1/policy", json=rule)).status_code == 200
    asked = {"agent": "marco", "file": "rules.md", "sha": sha("x")}
    assert await query_error_code(owner, ACCEPT, **asked) == "NOT_FOUND"
    asked = {"template": "sales", "file": "rules.md", "tenant": desk.tenant, "sha": sha("x")}
    assert await query_error_code(owner, BULK, **asked) == "NOT_FOUND"


async def test_accepting_is_for_people_who_lead(
    here: FullApp, owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    asked = {"agent": "marco", "file": GUARDRAILS, "sha": sha("be good")}
    bulk = {"template": "sales", "file": GUARDRAILS, "tenant": desk.tenant, "sha": sha("be good")}
    machine = await here.key(owner, *Permission)
    for who in (await create_member(here, owner), machine):
        assert await query_error_code(who, ACCEPT, **asked) == "FORBIDDEN"
        assert await query_error_code(who, ACCEPT, **{**asked, "agent": "nobody"}) == "FORBIDDEN"
        assert await query_error_code(who, BULK, **bulk) == "FORBIDDEN"
        assert len((await query_data(who, STATUS, agent="marco"))["agentPinStatus"]) >= 3
    admin = await create_member(here, owner, "admin")
    assert (await query_data(admin, ACCEPT, **asked))["acceptTemplateUpdate"]["id"] == desk.agent


async def test_a_repeated_key_gives_the_same_and_acts_once(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    asked = {"agent": "marco", "file": GUARDRAILS, "key": "once", "sha": sha("be better")}
    await write(owner, RULES, "be better")
    await query_data(owner, ACCEPT, **asked)
    await write(owner, RULES, "be best")
    again = await query_data(owner, ACCEPT, **asked)
    assert again["acceptTemplateUpdate"]["id"] == desk.agent
    assert await text(owner) == "be better"
    other = {**asked, "file": "PLATFORM.md"}
    assert await query_error_code(owner, ACCEPT, **other) == "CONFLICT"


async def test_what_was_refused_may_be_tried_again_under_its_key(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    asked = {"agent": "marco", "file": GUARDRAILS, "key": "again", "sha": sha("be better")}
    assert await query_error_code(owner, ACCEPT, **asked) == "CONFLICT"
    await write(owner, RULES, "be better")
    assert (await query_data(owner, ACCEPT, **asked))["acceptTemplateUpdate"]["id"] == desk.agent


async def test_all_that_follow_are_told_of_one_by_one(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    polo = await create(owner, "/v1/agents", slug="polo", name="Polo", templateId="sales")
    await write(owner, RULES, "be better")
    asked = {"template": "sales", "file": GUARDRAILS, "tenant": desk.tenant}
    stale = (await query_data(owner, BULK, **asked, sha=sha("be good")))["acceptTemplateUpdateBulk"]
    assert (stale["accepted"], stale["failed"]) == (0, 2)
    assert all("review" in one["error"] for one in stale["results"])
    asked["sha"] = sha("be better")
    done = (await query_data(owner, BULK, **asked))["acceptTemplateUpdateBulk"]
    entry = {"success": True, "error": None}
    ids = sorted([desk.agent, polo])
    assert done == {"accepted": 2, "failed": 0, "results": [{"agentId": id, **entry} for id in ids]}
    again = (await query_data(owner, BULK, **asked))["acceptTemplateUpdateBulk"]
    assert again == done
    await create(owner, "/v1/templates", slug="idle", name="Idle")
    await write(owner, f"/v1/templates/idle/files/{GUARDRAILS}", "x")
    idle = (await query_data(owner, BULK, **{**asked, "template": "idle"}))[
        "acceptTemplateUpdateBulk"
    ]
    assert idle == {"accepted": 0, "failed": 0, "results": []}


async def test_a_bulk_accept_is_for_ones_own_tenant(
    here: FullApp, owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    other = await here.owner("globex")
    theirs = (await other.get("/v1/tenants/me")).json()["id"]
    for asked in (
        {"template": "sales", "tenant": theirs},
        {"template": "nobody", "tenant": desk.tenant},
    ):
        asked |= {"file": GUARDRAILS, "sha": sha("be good")}
        assert await query_error_code(owner, BULK, **asked) == "NOT_FOUND"
    for tenant in (theirs, desk.tenant):
        asked = {"template": desk.template, "tenant": tenant, "sha": sha("be good")}
        assert await query_error_code(other, BULK, file=GUARDRAILS, **asked) == "NOT_FOUND"


async def test_a_pin_is_rolled_back(owner: httpx.AsyncClient, desk: GraphqlTenant) -> None:
    await write(owner, RULES, "be better")
    await query_data(owner, ACCEPT, agent="marco", file=GUARDRAILS, sha=sha("be better"))
    back = 'mutation { rollBackPin(agentId: "marco", filename: "GUARDRAILS.md") { id } }'
    assert (await query_data(owner, back))["rollBackPin"] == {"id": desk.agent}
    assert await text(owner) == "be good"
    answer = await execute_query(owner, back.replace("filename", "version: 99, filename"))
    assert answer["data"] == {"rollBackPin": None}
    assert answer["errors"][0]["extensions"]["code"] == "NOT_FOUND"


DETAILS = """{ agentPinStatus(agentId: "marco") { path pinnedTokens latestTokens latestSource
  latestVersion latestAuthor latestReason latestAt } }"""


async def test_a_review_tells_who_wrote_what_is_offered_why_and_how_long_it_is(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    where = "/v1/templates/sales/files/GUARDRAILS.md"
    reason = {"Carrel-Reason": "after the audit"}
    text = "be good, be careful, and ask before you spend anything"
    await owner.put(where, json={"content": text}, headers=reason)
    me = (await query_data(owner, "{ me { personId } }"))["me"]["personId"]
    found = {row["path"]: row for row in (await query_data(owner, DETAILS))["agentPinStatus"]}
    rows = (await owner.get("/v1/agents/marco/pins")).json()["items"]
    for path in ("GUARDRAILS.md", "PLATFORM.md"):
        [row] = [one for one in rows if one["path"] == path]
        assert {name: row[name] for name in found[path]} == found[path]
    rules, platform = found["GUARDRAILS.md"], found["PLATFORM.md"]
    assert (rules["latestSource"], rules["latestVersion"]) == ("template", 2)
    assert (rules["latestAuthor"], rules["latestReason"]) == (me, "after the audit")
    assert rules["latestAt"] == (await owner.get(where)).json()["updatedAt"]
    assert 0 < rules["pinnedTokens"] < rules["latestTokens"]
    assert (platform["latestSource"], platform["latestVersion"]) == ("defaults", 1)
    assert platform["pinnedTokens"] == platform["latestTokens"]


async def test_where_nothing_is_offered_nothing_is_told_of_it(
    owner: httpx.AsyncClient, desk: GraphqlTenant
) -> None:
    for where in ("/v1/templates/sales", "/v1/defaults"):
        await owner.delete(f"{where}/files/GUARDRAILS.md")
    [rules, *_] = (await query_data(owner, DETAILS))["agentPinStatus"]
    assert rules.pop("pinnedTokens") > 0
    assert rules.pop("path") == "GUARDRAILS.md"
    assert set(rules.values()) == {None}
    rows = (await owner.get("/v1/agents/marco/pins")).json()["items"]
    [row] = [one for one in rows if one["path"] == "GUARDRAILS.md"]
    assert {row[name] for name in rules} == {None}
