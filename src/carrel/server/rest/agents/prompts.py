"""REST endpoints for the system prompts of agents and runs."""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta

from carrel.actions.prompt import lint as prompt_lint
from carrel.actions.prompt import prompts
from carrel.actions.prompt.prompts import AssembledPrompt
from carrel.actions.runs import runs, snapshots
from carrel.core.access import Permission
from carrel.core.errors import Conflict, NotFound
from carrel.core.fleet.prompt_sizes import prompt_sizes
from carrel.core.prompt.blocks import BlockStatus
from carrel.core.prompt.lint import LintRule
from carrel.core.runs import Run, parse_audience
from carrel.server.http.endpoint import (
    IF_NONE_MATCH,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.not_modified import etag_matches, json_with_etag, not_modified
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import PositiveInt

_TAG: Final = "Prompts"
Count = Annotated[int, Meta(ge=0)]
_ETAG_SLICE: Final = slice(-4 - prompts.ETAG_LENGTH, -4)
"""Position of the etag, without its quotes, in an encoded PromptModel."""
AnyRequest = Request[Any, Any]


class PromptQuery(RequestModel, frozen=True):
    scope: (
        Annotated[str, Meta(max_length=64, description="`main`; any other value means shared.")]
        | None
    ) = None


class PromptBlockModel(ResponseModel, frozen=True):
    """How one file was included in the prompt, or why it was not."""

    name: str
    path: str
    source: str | None
    version: PositiveInt | None
    chars: Count
    """Length in the prompt, including the heading."""
    tokens: Count
    kept: BlockStatus
    reason: str
    """Why it was cut or omitted."""


class PromptModel(ResponseModel, frozen=True):
    text: str
    blocks: list[PromptBlockModel]
    chars: Count
    tokens: Count
    tokenizer: str
    """Tokenizer that counted the tokens, or `estimate`."""
    etag: str
    """Last field, so that _ETAG_SLICE finds it in the encoded response."""


class _UncacheablePromptModel(PromptModel, frozen=True):
    """A prompt that may change without a write, since a file could not be read."""

    @property
    def is_cacheable(self) -> bool:
        return False


def block_to_model(block: prompts.BlockTokens) -> PromptBlockModel:
    return PromptBlockModel(
        name=block.name,
        path=block.path,
        source=block.source,
        version=block.version,
        chars=block.chars,
        tokens=block.tokens,
        kept=block.kept,
        reason=block.reason,
    )


@endpoint(
    "GET",
    "/v1/agents/{id}/prompt",
    query=PromptQuery,
    permission=Permission.WORKSPACE_READ,
    responses={200: PromptModel, 304: None},
    refusals=(NotFound, Conflict),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    id="agents_prompt",
    tag=_TAG,
)
async def get_agent_prompt(request: Request[None, PromptQuery]) -> Response:
    """Get an agent's system prompt, with the outcome for each candidate file.

    Scope `shared` omits files that are for one person. Refused with 409 while a policy file does
    not fit or cannot be read.
    """
    audience = parse_audience(request.query.scope)
    prompt_request = await prompts.load_prompt_request(
        request.ports, request.actor, request.params["id"], audience
    )
    key = (request.ports.store, request.actor.tenant, "prompt", prompt_request.key)
    body = await request.caches.responses.get_or_create(
        key, lambda: _assemble(request, prompt_request)
    )
    return _conditional_response(request, body)


async def _assemble(request: AnyRequest, prompt_request: prompts.PromptRequest) -> object:
    return _prompt_to_model(await prompts.assemble_prompt(request.ports, prompt_request))


@endpoint(
    "GET",
    "/v1/runs/{id}/prompt",
    permission=Permission.WORKSPACE_READ,
    responses={200: PromptModel, 304: None},
    refusals=(NotFound, Conflict),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    id="runs_prompt",
    tag=_TAG,
)
async def get_run_prompt(request: Request) -> Response:
    """Get the exact system prompt of a run. It never changes.

    A run in scope `shared` always returns the shared prompt.
    """
    run = await runs.get(request.ports, request.actor, request.params["id"])
    # Erasure replaces content of a snapshot, and raises the current revision.
    revisions = await request.ports.trees.revisions([layer.scope for layer in run.snapshot])
    key = (prompts.run_content_etag(run), revisions)
    return _conditional_response(request, await load_run_prompt_body(request, run, key))


async def load_run_prompt_body(
    request: AnyRequest, run: Run, content_key: tuple[str, tuple[int, ...]]
) -> bytes:
    """Encoded PromptModel of a run, cached for all runs of the same content.

    The key has the current revisions of the layers too. Notes the sizes of the blocks, which are
    counted later.
    """
    snapshots.require_snapshot(run)
    ports = request.ports

    async def assemble() -> object:
        return _prompt_to_model(await prompts.load_run_prompt(ports, run))

    key = (ports.store, run.tenant, "run prompt", *content_key, ports.tokenizer.name)
    body = await request.caches.responses.get_or_create(key, assemble)
    if not run.has_ended and run.agent is not None:
        blocks = msgspec.json.decode(body, type=_PromptBlockSizes).blocks
        sizes = prompt_sizes(run, [(block.name, block.tokens) for block in blocks])
        ports.prompt_sizes[run.id] = run, sizes
    return body


class _PromptBlockSize(msgspec.Struct, frozen=True):
    name: str
    tokens: int


class _PromptBlockSizes(msgspec.Struct, frozen=True):
    """The part of an encoded PromptModel that is counted."""

    blocks: list[_PromptBlockSize]


class PromptFlawModel(ResponseModel, frozen=True):
    fault: LintRule
    path: str
    text: str
    """Location by file and line, without content."""


class PromptLintModel(ResponseModel, frozen=True):
    ok: bool
    flaws: list[PromptFlawModel]


@endpoint(
    "GET",
    "/v1/agents/{id}/prompt/lint",
    permission=Permission.WORKSPACE_READ,
    responses={200: PromptLintModel},
    refusals=(NotFound,),
    id="agents_prompt_lint",
    tag=_TAG,
)
async def lint_agent_prompt(request: Request) -> Response:
    """Check an agent's prompt for cut, unused, secret or unstable content."""
    flaws = await prompt_lint.lint_agent(request.ports, request.actor, request.params["id"])
    models = [PromptFlawModel(fault=flaw.rule, path=flaw.path, text=flaw.text) for flaw in flaws]
    return Response.json(PromptLintModel(ok=not models, flaws=models))


def _prompt_to_model(prompt: AssembledPrompt) -> PromptModel:
    model = PromptModel if prompt.is_cacheable else _UncacheablePromptModel
    return model(
        text=prompt.text,
        blocks=[block_to_model(block) for block in prompt.blocks],
        chars=prompt.chars,
        tokens=prompt.tokens,
        tokenizer=prompt.tokenizer,
        etag=prompt.etag,
    )


def prompt_body_etag(body: bytes) -> str:
    """Quoted ETag of an encoded PromptModel."""
    return f'"{body[_ETAG_SLICE].decode()}"'


def _conditional_response(request: AnyRequest, body: bytes) -> Response:
    etag = prompt_body_etag(body)
    return not_modified(etag) if etag_matches(request, etag) else json_with_etag(body, etag)


ENDPOINTS: Final = (get_agent_prompt, lint_agent_prompt, get_run_prompt)
