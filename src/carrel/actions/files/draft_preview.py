"""Drafts: what an agent would be served of a text that nobody has stored."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from carrel.actions.overlay.agent_layers import load_agent_layers
from carrel.actions.policy.tenant_rules import load_rules
from carrel.core.identifiers import Path, Stack
from carrel.core.overlay.file_classes import FileClass
from carrel.core.overlay.placeholders import render_bytes, split
from carrel.ports import Ports


class RenderedDraft(Struct, frozen=True):
    """A draft as it would be served."""

    content: bytes
    filled: Mapping[str, str]
    """What is written for each placeholder that stands in it, in the order of the text."""


async def render(ports: Ports, stack: Stack, path: Path, draft: bytes) -> RenderedDraft:
    """The draft as an agent's file: without secrets, and its placeholders filled in.

    A pinned file is served to the letter, so nothing is filled in there; a managed one is what
    Carrel would write from this text. Raises Missing, TooLarge, or Malformed for a path that no
    file could have.
    """
    own = stack[0]
    agent_layers = await load_agent_layers(ports, own.tenant, own.name)
    rules = await load_rules(ports, own.tenant)
    file_class = rules.policy.classes.check_path(path)
    rules.policy.limits_of(own).admit(len(draft))
    stored = rules.redactor.redact(draft).content
    if file_class is FileClass.PINNED:
        return RenderedDraft(stored, {})
    variables = agent_layers.eye.variables
    tokens = dict.fromkeys(piece.token for piece in split(stored) if piece.token)
    filled = {token: variables.shown[token] for token in tokens}
    return RenderedDraft(render_bytes(stored, variables), filled)
