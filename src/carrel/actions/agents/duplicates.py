"""Duplicates of agents and templates: their own files and fields under another name."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec.structs import replace

from carrel.actions.agents import agents, templates
from carrel.actions.overlay.agent_layers import load_placeholder_values
from carrel.actions.overlay.managed_files import AgentWithVariables, draft_user_files
from carrel.actions.policy.tenant_rules import TenantRules, load_rules
from carrel.actions.records import FileDrafts, commit_changes, record_after
from carrel.actions.retry import retry_on_conflict
from carrel.core.access import Actor
from carrel.core.agents.agent import agent_change, agent_from_record
from carrel.core.agents.identity_name import IDENTITY_PATH, parse_agent_name, rename_identity
from carrel.core.agents.private_access import require_full_access
from carrel.core.agents.template import TemplateRecord, template_change
from carrel.core.identifiers import Path, Scope, ScopeKind
from carrel.core.overlay.agent_resolution import is_pin
from carrel.core.sessions.shared_session_visibility import is_private_path
from carrel.core.store.commit import Write, expect_unchanged
from carrel.core.store.entry import Entry
from carrel.core.store.idempotency import IdempotencyKey
from carrel.core.store.record import Record
from carrel.core.store.tree import Tree
from carrel.core.text_validation import parse_unreserved_slug, single_line
from carrel.ports import Ports

_TRANSCRIPTS_DIR = "transcriptsDir"


@retry_on_conflict()
async def duplicate_agent(
    ports: Ports,
    actor: Actor,
    original: str,
    slug: str,
    name: str,
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Create an agent with the own files, pins and settings of another one, in one commit.

    Without its memories, notes, sessions, keys and items, and its directory of transcripts. Pinned
    files stay as reviewed for the original. Raises NotFound, Forbidden, and Conflict if the slug is
    in use.
    """
    expected = await agents.load_expected_revisions(ports, actor.tenant)
    rules = await load_rules(ports, actor.tenant)
    source = await agents.get(ports, actor, original)
    require_full_access(actor, source)
    slug, name = rules.redact_fields((slug, name))
    fields = agent_from_record(source)
    agent = replace(
        fields,
        slug=parse_unreserved_slug(slug),
        name=parse_agent_name(name),
        config=_own_config(fields.config),
    )
    change = agent_change(actor.tenant, ports.clock.new_id("agt"), agent)
    drafts = await _agent_files(ports, rules, source, record_after(change, 0))
    committed_at = await commit_changes(
        ports,
        actor,
        f"duplicate agent {fields.slug}",
        [change],
        collection_revisions=[*expected, *rules.collection_revisions],
        idempotency_key=idempotency_key,
        drafts=drafts,
    )
    return record_after(change, committed_at)


async def _agent_files(
    ports: Ports, rules: TenantRules, source: Record, duplicate: Record
) -> FileDrafts:
    """Draft the duplicate's own files: IDENTITY.md and USER.md with its own name."""
    fields = agent_from_record(duplicate)
    scope = Scope(duplicate.tenant, ScopeKind.AGENT, duplicate.id)
    [tree] = await ports.trees.read([Scope(source.tenant, ScopeKind.AGENT, source.id)])

    def rewrite(path: Path, text: bytes) -> bytes:
        return rename_identity(text, fields.name) if path == IDENTITY_PATH else text

    drafts = await _copy_files(ports, rules, tree, scope, rewrite)
    if not fields.user_file:
        return drafts
    values = await load_placeholder_values(ports, duplicate)
    return drafts + await draft_user_files(ports, rules, [AgentWithVariables(duplicate, values)])


@retry_on_conflict()
async def duplicate_template(
    ports: Ports,
    actor: Actor,
    original: str,
    slug: str,
    name: str,
    idempotency_key: IdempotencyKey | None = None,
) -> Record:
    """Create a template with the files of another one, in one commit.

    Agents stay with the original. Raises NotFound, and Conflict if the slug is in use.
    """
    rules = await load_rules(ports, actor.tenant)
    source = await templates.get(ports, actor, original)
    slug, name = rules.redact_fields((slug, name))
    template = TemplateRecord(parse_unreserved_slug(slug), single_line(name, "name"))
    change = template_change(actor.tenant, ports.clock.new_id("tpl"), template)
    [tree] = await ports.trees.read([Scope(actor.tenant, ScopeKind.TEMPLATE, source.id)])
    scope = Scope(actor.tenant, ScopeKind.TEMPLATE, change.id)
    drafts = await _copy_files(ports, rules, tree, scope, lambda _, text: text)
    committed_at = await commit_changes(
        ports,
        actor,
        "duplicate a template",
        [change],
        collection_revisions=rules.collection_revisions,
        idempotency_key=idempotency_key,
        drafts=drafts,
    )
    return record_after(change, committed_at)


def _own_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Config without the directory of transcripts, which one agent has."""
    return {name: value for name, value in config.items() if name != _TRANSCRIPTS_DIR}


async def _copy_files(
    ports: Ports,
    rules: TenantRules,
    tree: Tree,
    scope: Scope,
    rewrite: Callable[[Path, bytes], bytes],
) -> FileDrafts:
    """Draft the tree's files in another scope, with what was reviewed of them.

    Pins keep their content; others are redacted again. Private files of agents are left out.
    """
    is_agent = scope.kind is ScopeKind.AGENT
    heads = [head for path, head in tree.heads.items() if not (is_agent and is_private_path(path))]
    entries = {head.path: head.entry for head in heads if head.entry is not None}
    own = {path: entry for path, entry in entries.items() if not is_pin(entry)}
    texts = await ports.blobs.get({entry.blob for entry in own.values()})
    contents = {
        path: rules.redactor.redact(rewrite(path, texts[entry.blob.digest])).content
        for path, entry in own.items()
    }
    blobs = dict(zip(contents, await ports.blobs.put(list(contents.values())), strict=True))
    writes = [
        Write(
            scope,
            head.path,
            _with_blob(entries[head.path], blobs.get(head.path)),
            reviewed=head.reviewed,
        )
        for head in heads
    ]
    writes += [
        Write(scope, path, None, reviewed=offer)
        for path, offer in tree.reviewed_offers.items()
        if path not in entries
    ]
    writes += [
        Write(scope, path, None, directory=head.directory)
        for path, head in tree.directories.items()
        if not (is_agent and is_private_path(path))
    ]
    expects = tuple(expect_unchanged(tree, head.path) for head in heads)
    return FileDrafts(tuple(writes), expects)


def _with_blob(entry: Entry, blob: Any) -> Entry:
    return entry if blob is None else replace(entry, blob=blob)
