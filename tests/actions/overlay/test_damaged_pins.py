"""A pin with damaged content is never accepted: the reviewed version stays."""

from __future__ import annotations

from pathlib import Path as File

import pytest
from tests.support.overlay_tenant import RULES, OverlayTenant
from tests.support.stores import overwrite_content
from tests.support.tenants import create_tenant

from carrel.actions.overlay import bulk_reviews, pin_reviews
from carrel.core.errors import Conflict
from carrel.core.identifiers import digest
from carrel.ports import CorruptContent, Ports

pytestmark = pytest.mark.anyio
BETTER = b"be better"


async def test_damaged_content_is_neither_accepted_nor_rolled_back_to(
    ports: Ports, tmp_path: File
) -> None:
    _, owner = await create_tenant(ports)
    tenant = await OverlayTenant(ports, owner).open()
    await tenant.write(tenant.sales, RULES, BETTER)
    overwrite_content(tmp_path, digest(BETTER), b"be bitter")

    with pytest.raises(Conflict, match=r"GUARDRAILS\.md"):
        await pin_reviews.accept(ports, owner, "marco", RULES, digest(BETTER))
    [result] = await bulk_reviews.accept_for_all(ports, owner, "sales", RULES, digest(BETTER))
    assert (result.changed, type(result.problem)) == (False, Conflict)
    assert await tenant.read(RULES) == b"be good"
    [status] = [
        review
        for review in await pin_reviews.load_reviews(ports, owner, "marco")
        if review.pin.path == RULES
    ]
    assert status.pinned == b"be good"
    assert isinstance(status.latest, CorruptContent)

    overwrite_content(tmp_path, digest(BETTER), BETTER)
    await pin_reviews.accept(ports, owner, "marco", RULES, digest(BETTER))
    overwrite_content(tmp_path, digest(b"be good"), b"be goof")
    with pytest.raises(Conflict):
        await pin_reviews.roll_back(ports, owner, "marco", RULES)
    assert await tenant.read(RULES) == BETTER
