"""Pins, pairing and defaults in a Python program."""

from __future__ import annotations

import pytest

import carrel
from carrel import Carrel
from carrel.core.overlay.default_files import DefaultFileState

pytestmark = pytest.mark.anyio


async def test_an_update_is_reviewed_accepted_for_one_or_all_and_rolled_back(desk: Carrel) -> None:
    await desk.templates.create("calm")
    calm, ada = desk.template("calm"), desk.agent("ada")
    await calm.put("GUARDRAILS.md", "one")
    for slug in ("ada", "bob"):
        await desk.agents.create(slug, slug.title(), template="calm")
    await calm.put("GUARDRAILS.md", "two")
    [pin] = [pin for pin in await ada.pins() if pin.update_available]
    assert (pin.path, pin.pinned, pin.latest) == ("GUARDRAILS.md", "one", "two")
    assert pin.latest_sha256
    with pytest.raises(carrel.WorkspaceConflict):
        await ada.accept("GUARDRAILS.md", pin.pinned_sha256 or "")
    with pytest.raises(carrel.ValidationError):
        await ada.accept("GUARDRAILS.md", "two")
    await ada.accept("GUARDRAILS.md", f"sha256:{pin.latest_sha256}")
    assert (await ada.get("GUARDRAILS.md")).content == "two"
    results = await calm.accept("GUARDRAILS.md", pin.latest_sha256)
    assert [result.changed for result in results] == [False, True]
    assert (await ada.roll_back("GUARDRAILS.md")).pinned_sha256 == pin.pinned_sha256
    row = await ada.get("GUARDRAILS.md")
    assert (row.content, row.file_class, row.update_available) == ("one", "pinned", True)


async def test_a_pinned_file_is_overridden_only_on_purpose(desk: Carrel) -> None:
    await desk.agents.create("ada")
    with pytest.raises(carrel.Forbidden):
        await desk.agent("ada").put("GUARDRAILS.md", "mine")
    mine = await desk.agent("ada").put("GUARDRAILS.md", "mine", accept_template_update=True)
    assert mine.source == "agent-override-pinned"


async def test_a_change_of_an_agent_takes_its_files_along(desk: Carrel) -> None:
    ann = await desk.people.create("Ann", "ann@example.org", title="Dr")
    await desk.agents.create("ada", "Ada")
    ada = desk.agent("ada")
    paired = await desk.agents.change("ada", human=ann.id, name="Countess", config={"model": "m"})
    assert (paired.human, paired.name, paired.config) == (ann.id, "Countess", {"model": "m"})
    assert "Ann" in (await ada.get("USER.md")).content
    assert "Countess" in (await ada.get("IDENTITY.md")).content
    assert "{{AGENT_NAME}}" in (await ada.get("IDENTITY.md", raw=True)).content
    assert "{{AGENT_NAME}}" in (await ada.read(raw=True))["IDENTITY.md"]
    alone = await desk.agents.change("ada", human=None)
    assert (alone.human, "Ann" in (await ada.get("USER.md")).content) == (None, False)
    await desk.templates.create("calm")
    assert (await desk.templates.change("calm", name="Calmer")).name == "Calmer"


async def test_defaults_follow_what_is_packaged(desk: Carrel) -> None:
    await desk.defaults.put("SOUL.md", "ours")
    await desk.defaults.delete("ROUTER.md")
    states = {
        path.text: state for path, state in (await desk.defaults.status()).plan.states.items()
    }
    assert (states["SOUL.md"], states["ROUTER.md"]) == (
        DefaultFileState.EDITED,
        DefaultFileState.DELETED,
    )
    await desk.defaults.update(take=["ROUTER.md"])
    assert (await desk.defaults.get("ROUTER.md")).content
    with pytest.raises(carrel.ValidationError):
        await desk.defaults.update(take="ROUTER.md")
