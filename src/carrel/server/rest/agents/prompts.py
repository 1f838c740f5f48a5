"""Prompts over HTTP: of an agent as it is now, and of a run as it was."""

from __future__ import annotations

from typing import Annotated, Any, Final

from msgspec import Meta

from carrel.actions.prompt import lint as prompt_lint
from carrel.actions.prompt import prompts
from carrel.actions.prompt.prompts import AssembledPrompt
from carrel.actions.runs import runs
from carrel.core.access import Permission
from carrel.core.errors import Conflict, NotFound
from carrel.core.prompt.assembly import BlockFate
from carrel.core.prompt.lint import LintRule
from carrel.core.runs import mode_of
from carrel.server.http.conditional import file_answer, matches, unchanged
from carrel.server.http.endpoint import (
    IF_NONE_MATCH,
    Request,
    RequestModel,
    ResponseModel,
    endpoint,
)
from carrel.server.http.response import Response
from carrel.server.rest.files.file_models import Number
from carrel.server.rest.files.response_cache import RESPONSE_CACHE

_TAG: Final = "Prompts"
Count = Annotated[int, Meta(ge=0)]
_ETAG: Final = slice(-4 - prompts.ETAG, -4)
"""Where the etag stands in an answer, without its quotes: before `\\""}`."""
Asked = Request[Any, Any]


class PromptQuery(RequestModel, frozen=True):
    scope: (
        Annotated[str, Meta(max_length=64, description="main, or anything else: shared.")] | None
    ) = None


class PromptBlock(ResponseModel, frozen=True):
    """What became of one file that could have stood in the prompt."""

    name: str
    path: str
    source: str | None
    version: Number | None
    chars: Count
    """Of what stands in the prompt for it, with its heading."""
    tokens: Count
    kept: BlockFate
    reason: str
    """Why it was cut or left out."""


class PromptModel(ResponseModel, frozen=True):
    text: str
    blocks: list[PromptBlock]
    chars: Count
    tokens: Count
    tokenizer: str
    """What counted the tokens, or `estimate`."""
    etag: str

    """The last that is said, so that it can be found in an answer that is kept as bytes."""


class _UncacheablePrompt(PromptModel, frozen=True):
    """One that may be another the next time, since a file could not be had."""

    @property
    def lasts(self) -> bool:
        return False


def _block(found: prompts.BlockTokens) -> PromptBlock:
    return PromptBlock(
        name=found.name,
        path=found.path,
        source=found.source,
        version=found.version,
        chars=found.chars,
        tokens=found.tokens,
        kept=found.kept,
        reason=found.reason,
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
async def of_agent(call: Request[None, PromptQuery]) -> Response:
    """Show an agent's system prompt, and what became of each file that could be in it.

    In the scope `shared` it holds nothing that is for one person alone. There is none while a
    policy file does not fit or cannot be had.
    """
    mode = mode_of(call.query.scope)
    asked = await prompts.load_prompt_request(call.ports, call.actor, call.params["id"], mode)
    key = (call.actor.tenant, "prompt", asked.key)
    return _answer(call, await RESPONSE_CACHE.get_or_create(key, lambda: _agents(call, asked)))


async def _agents(call: Asked, asked: prompts.PromptRequest) -> object:
    return _told(await prompts.assemble_prompt(call.ports, asked))


@endpoint(
    "GET",
    "/v1/runs/{id}/prompt",
    permission=Permission.WORKSPACE_READ,
    allow_unknown_query=True,
    responses={200: PromptModel, 304: None},
    refusals=(NotFound, Conflict),
    headers=(IF_NONE_MATCH,),
    response_headers=("ETag",),
    id="runs_prompt",
    tag=_TAG,
)
async def of_run(call: Request) -> Response:
    """Show the exact system prompt of a run: the same for ever, whatever has changed since.

    A run in the scope `shared` has the shared one, whatever is asked for.
    """
    run = await runs.get(call.ports, call.actor, call.params["id"])
    runs.snapshot_layers(run)
    key = (call.actor.tenant, "run prompt", run.id, call.ports.tokens.name)

    async def make() -> object:
        return _told(await prompts.of_run(call.ports, run))

    return _answer(call, await RESPONSE_CACHE.get_or_create(key, make))


class PromptFlaw(ResponseModel, frozen=True):
    fault: LintRule
    path: str
    text: str
    """By file and line, never by content."""


class PromptFlaws(ResponseModel, frozen=True):
    ok: bool
    flaws: list[PromptFlaw]


@endpoint(
    "GET",
    "/v1/agents/{id}/prompt/lint",
    permission=Permission.WORKSPACE_READ,
    responses={200: PromptFlaws},
    refusals=(NotFound,),
    id="agents_prompt_lint",
    tag=_TAG,
)
async def lint(call: Request) -> Response:
    """Say what is wrong with an agent's prompt: what is cut, dead, secret or unstable."""
    found = await prompt_lint.of_agent(call.ports, call.actor, call.params["id"])
    told = [PromptFlaw(fault=each.fault, path=each.path, text=each.text) for each in found]
    return Response.json(PromptFlaws(ok=not told, flaws=told))


def _told(shown: AssembledPrompt) -> PromptModel:
    kind = PromptModel if shown.lasts else _UncacheablePrompt
    return kind(
        text=shown.text,
        blocks=[_block(each) for each in shown.blocks],
        chars=shown.chars,
        tokens=shown.tokens,
        tokenizer=shown.tokenizer,
        etag=shown.etag,
    )


def _answer(call: Asked, body: bytes) -> Response:
    etag = f'"{body[_ETAG].decode()}"'
    return unchanged(etag) if matches(call, etag) else file_answer(body, etag)


ENDPOINTS: Final = (of_agent, lint, of_run)
