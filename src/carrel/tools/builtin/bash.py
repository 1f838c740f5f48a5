"""Tool `bash`: runs a command in a sandbox, with or without workspace files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, UnsetType
from msgspec.structs import replace

from carrel.actions.policy.tenant_rules import load_rules
from carrel.actions.sandbox import command_output, jobs, write_back
from carrel.actions.sandbox.command_inputs import CommandInputs, load_inputs
from carrel.actions.sandbox.command_output import NO_SAVED_OUTPUT, SavedOutput
from carrel.actions.sandbox.sandboxes import decrypt_config, resource_limits
from carrel.actions.sandbox.write_back import WriteBackResult
from carrel.actions.skills.command_skills import CommandSkills
from carrel.core.agents.agent import agent_from_record
from carrel.core.errors import (
    CapabilityNotProvided,
    Conflict,
    Forbidden,
    NotFound,
    ValidationError,
    WorkspaceTooLarge,
)
from carrel.core.identifiers import Path
from carrel.core.redaction.secret_patterns import PRIVATE_KEY
from carrel.core.sandbox.command_arguments import (
    check_environment,
    check_timeout,
    prepare_command,
)
from carrel.core.sandbox.command_report import (
    TRUNCATION_SLACK_BYTES,
    format_report,
    was_interrupted,
)
from carrel.core.sandbox.file_tools import normalize_path, truncate_output
from carrel.core.sandbox.interpreter_policy import disallowed_runtime
from carrel.core.sandbox.tool_access import (
    SandboxSpec,
    ToolAccess,
    derive_instance_key,
    with_background,
    with_workspace,
)
from carrel.core.sandbox.write_back import CommittedFile
from carrel.core.skills.sandbox_directory import EXPORT_COMMAND, SANDBOX_DIRECTORY
from carrel.core.store.entry import FileAttributes
from carrel.ports import Sandbox as Provider
from carrel.ports.request_scope import CallerDisconnected, run_while_connected
from carrel.ports.sandbox import CommandResult, CommandSpec, ResourceLimits, SandboxUnavailable
from carrel.tools.command_skills import load_skills, skill_notes
from carrel.tools.tool import (
    ApprovalCheck,
    Tool,
    ToolArguments,
    ToolContext,
    ToolReply,
    ToolResultFields,
    structured_reply,
)
from carrel.tools.workspace_tool import (
    WorkspaceCall,
    WorkspaceName,
    resolve_workspace_call,
)

DEFAULT_IDLE_SECONDS: Final = 900
_MAX_COMMAND_BYTES: Final = 128 * 1024 - 1
"""Kernel limit of one command argument."""


class BashArguments(ToolArguments, frozen=True):
    command: Annotated[str, Meta(description="Command for bash. Each call starts a new shell.")]
    workspace: WorkspaceName = ""
    background: Annotated[bool, Meta(description="Run in the background and return at once.")] = (
        False
    )
    timeout: Annotated[
        int | UnsetType, Meta(description="Seconds; at most the sandbox's own limit.")
    ] = UNSET
    cwd: Annotated[
        str, Meta(description="Directory of the workspace to run in; default: its root.")
    ] = ""
    env: Annotated[
        dict[str, str], Meta(description="Environment variables for this call only.")
    ] = msgspec.field(default_factory=dict)


class CommandOutput(ToolResultFields, frozen=True, rename="camel"):
    """Result of a finished command."""

    stdout: str
    stderr: str
    exit_code: int | None
    """None if the command was killed for its time limit."""
    timed_out: bool
    truncated: bool
    """Whether stdout or stderr is cut; `output_files` has more."""
    duration_ms: int
    changed: tuple[CommittedFile, ...]
    """Saved changes, in order of path."""
    notes: tuple[str, ...]
    output_files: tuple[str, ...] = ()
    """Files of the workspace with the output that was cut."""


class BackgroundCommand(ToolResultFields, frozen=True, rename="camel"):
    """A command that was started in the background."""

    status_id: str


async def _check(context: ToolContext, args: BashArguments) -> WorkspaceCall:
    if not args.command.strip():
        raise ValidationError("command is required")
    if "\0" in args.command:
        raise ValidationError("command must not contain NUL")
    workspace_call = await resolve_workspace_call("bash", context, args, args.workspace)
    sandbox = _sandbox(workspace_call)
    if runtime := disallowed_runtime(args.command, sandbox.config.get("runtimes")):
        raise Forbidden(f"this sandbox does not allow {runtime} commands")
    if args.background and _instance_key(workspace_call) is None:
        raise ValidationError(jobs.NEEDS_PERSISTENT_SANDBOX)
    bounds, persistent = resource_limits(sandbox.config), _instance_key(workspace_call) is not None
    _check_options(workspace_call, args, bounds)
    if reason := _provider(workspace_call).unsupported_reason(bounds, persistent=persistent):
        raise CapabilityNotProvided(f"Sandbox setup failed: {reason}")
    return workspace_call


def _check_options(
    workspace_call: WorkspaceCall, args: BashArguments, bounds: ResourceLimits
) -> None:
    """Check time limit, directory and variables. Raises ValidationError, Forbidden."""
    if args.timeout is not UNSET:
        if args.background:
            raise ValidationError("timeout is not available in the background")
        check_timeout(args.timeout, bounds.seconds)
    check_environment(args.env, _sandbox(workspace_call).config.get("envVars", {}))
    directory = normalize_path(args.cwd)
    if directory and workspace_call.target.workspace is None:
        raise ValidationError("cwd needs a workspace")
    if directory:
        workspace_call.files.require_visible(Path(directory))
    script = _script(workspace_call, args, has_skills=True)
    if len(script.encode(errors="surrogatepass")) > _MAX_COMMAND_BYTES:
        raise ValidationError(f"command must have {_MAX_COMMAND_BYTES} bytes at most")


async def _approval_check(context: ToolContext, args: BashArguments) -> ApprovalCheck:
    """Check of the call. Raises ValidationError if a person who is asked could not see it all.

    The command runs as it was sent, and is shown redacted. A marker instead of a token hides no
    command, but headers and lines of a private key may be commands.
    """
    check = (await _check(context, args)).approval_check
    if check.requires_approval:
        rules = await load_rules(context.ports, context.agent.tenant)
        if PRIVATE_KEY in rules.redactor.redact(args.command.encode()).replaced:
            raise ValidationError(
                "command has a private key, so a person cannot see what they approve; send the key"
                " in env"
            )
    return check


async def _run(context: ToolContext, args: BashArguments) -> ToolReply:
    workspace_call = await _check(context, args)
    slots, tenant = context.ports.command_slots, context.agent.tenant
    key = _instance_key(workspace_call)
    context.report_stage("waiting for other commands")
    async with slots.hold(tenant, instance_key=key, can_refuse=not context.is_approved) as waited:
        if waited:
            workspace_call = await _check(context, args)
        return await _run_for_caller(workspace_call, args)


async def _run_for_caller(workspace_call: WorkspaceCall, args: BashArguments) -> ToolReply:
    """Run the command; stop it if the caller leaves and nobody can ask for its result later."""
    context, running = workspace_call.context, _run_now(workspace_call, args)
    if args.background or context.is_approved or context.call_id is not None:
        return await running
    try:
        return await run_while_connected(running)
    except CallerDisconnected:
        raise Conflict("the caller disconnected, so the command was stopped") from None


async def _run_now(workspace_call: WorkspaceCall, args: BashArguments) -> ToolReply:
    try:
        if args.background:
            return await _run_in_background(workspace_call, args)
        if workspace_call.target.workspace is None:
            return await _run_without_files(workspace_call, args)
        return await _run_in_workspace(workspace_call, args)
    except SandboxUnavailable as error:
        raise CapabilityNotProvided(f"Sandbox setup failed: {error}") from None


async def _run_without_files(workspace_call: WorkspaceCall, args: BashArguments) -> ToolReply:
    """Run in an empty directory whose files are discarded."""
    ports, skills = workspace_call.context.ports, await _load_skills(workspace_call)
    spec = _command_spec(workspace_call, args, skills)
    workspace_call.context.report_stage("running")
    async with _provider(workspace_call).run(spec, ports.blobs) as result:
        return _report(workspace_call, spec, result, WriteBackResult())


async def _run_in_background(workspace_call: WorkspaceCall, args: BashArguments) -> ToolReply:
    """Start a background job; its changes are committed when it ends."""
    context, sandbox, workspace = (
        workspace_call.context,
        _sandbox(workspace_call),
        workspace_call.target.workspace,
    )
    skills = await _load_skills(workspace_call)
    spec = _command_spec(workspace_call, args, skills, await load_inputs(workspace_call.files))
    assert workspace and spec.instance_key
    job = jobs.JobRecord(
        context.agent.id,
        context.session,
        workspace.workspace,
        sandbox.id,
        sandbox.config["provider"],
        spec.instance_key,
        context.audience,
    )
    await jobs.start_job(context.ports, context.actor, job, spec)
    text = f"Started in the background; use async_status with statusId {spec.id}"
    return structured_reply(text, BackgroundCommand(status_id=spec.id))


async def _run_in_workspace(workspace_call: WorkspaceCall, args: BashArguments) -> ToolReply:
    workspace_files, ports = workspace_call.files, workspace_call.context.ports
    report_stage = workspace_call.context.report_stage
    report_stage("reading the files")
    inputs = await load_inputs(workspace_files)
    spec = _command_spec(workspace_call, args, await _load_skills(workspace_call), inputs)
    call_id = workspace_files.call or spec.id
    report_stage("running")
    async with _provider(workspace_call).run(spec, ports.blobs) as result:
        partial = was_interrupted(result.exit_code, timed_out=result.timed_out)
        note = " (partial)" if partial else ""
        reason = f"bash{note} {call_id}{_command_note(workspace_call, args)}"
        report_stage("saving changes")
        try:
            committed = await write_back.commit_changes(
                workspace_files, inputs, result, call_id, reason
            )
        except (WorkspaceTooLarge, NotFound, Conflict) as error:
            report = _report(workspace_call, spec, result, WriteBackResult()).content
            message = f"the changes were not saved: {error}\n{report}"
            raise type(error)(message, **error.details) from None
        files = await command_output.save_output(
            workspace_files, spec.id, result, _output_limit(workspace_call)
        )
        return _report(workspace_call, spec, result, committed, files)


def _command_spec(
    workspace_call: WorkspaceCall,
    args: BashArguments,
    skills: CommandSkills,
    inputs: CommandInputs | None = None,
) -> CommandSpec:
    sandbox, ports = _sandbox(workspace_call), workspace_call.context.ports
    config, id = decrypt_config(ports, sandbox), ports.clock.new_id("call")
    lifecycle, instance_key = config.get("lifecycle", {}), _instance_key(workspace_call)
    own_env = {} if instance_key else args.env
    has_files = inputs is not None or bool(skills.files)
    return CommandSpec(
        id,
        _script(workspace_call, args, has_skills=bool(skills.files)),
        {**(inputs.files if inputs else {}), **skills.files} if has_files else None,
        _call_limits(workspace_call, args),
        {**config.get("envVars", {}), **own_env},
        instance_key,
        idle_seconds=lifecycle.get("idleTimeoutSeconds", DEFAULT_IDLE_SECONDS),
        options=config.get("options", {}),
        lifetime_seconds=lifecycle.get("maxLifetimeSeconds"),
        directories={**skills.directories, **(inputs.directories if inputs else {})},
        root=inputs.root if inputs else FileAttributes(),
        read_only=SANDBOX_DIRECTORY,
        write_back=jobs.write_back_callback(
            workspace_call.files, id, _command_note(workspace_call, args)
        )
        if instance_key
        else None,
    )


def _command_note(workspace_call: WorkspaceCall, args: BashArguments) -> str:
    """End of the reason of a write: the command of a shared agent, nothing of a private one.

    Everyone who may read the workspace reads the reason; tool calls of private agents are private.
    """
    is_shared = agent_from_record(workspace_call.context.agent).is_shared
    return f": {args.command.strip()}" if is_shared else ""


async def _load_skills(workspace_call: WorkspaceCall) -> CommandSkills:
    is_persistent = _instance_key(workspace_call) is not None
    return await load_skills(workspace_call.context, is_persistent=is_persistent)


def _script(workspace_call: WorkspaceCall, args: BashArguments, *, has_skills: bool) -> str:
    """Return what bash runs; an instance keeps its environment, so the script sets variables."""
    env = args.env if _instance_key(workspace_call) else {}
    first_lines = (EXPORT_COMMAND,) if has_skills else ()
    return prepare_command(args.command.strip(), normalize_path(args.cwd), env, *first_lines)


def _call_limits(workspace_call: WorkspaceCall, args: BashArguments) -> ResourceLimits:
    """Limits of the sandbox, with the call's time and room to see whether output is cut."""
    limits = resource_limits(_sandbox(workspace_call).config)
    output_bytes = limits.output_bytes + TRUNCATION_SLACK_BYTES
    if workspace_call.target.workspace is not None and not args.background:
        output_bytes = max(output_bytes, command_output.MAX_SAVED_BYTES)
    timeout = None if args.timeout is UNSET else args.timeout
    seconds = check_timeout(timeout, limits.seconds)
    return replace(limits, seconds=seconds, output_bytes=output_bytes)


def _output_limit(workspace_call: WorkspaceCall) -> int:
    return resource_limits(_sandbox(workspace_call).config).output_bytes


def _instance_key(workspace_call: WorkspaceCall) -> str | None:
    """Key of the persistent sandbox instance; None if the sandbox is not persistent."""
    sandbox, workspace = _sandbox(workspace_call), workspace_call.target.workspace
    return (
        derive_instance_key(workspace.namespace, sandbox.id, workspace_call.context.audience)
        if workspace and sandbox.is_persistent
        else None
    )


def _report(
    workspace_call: WorkspaceCall,
    spec: CommandSpec,
    result: CommandResult,
    committed: WriteBackResult,
    saved: SavedOutput = NO_SAVED_OUTPUT,
) -> ToolReply:
    limit = _output_limit(workspace_call)
    stdout, stderr = (truncate_output(text, limit) for text in (result.stdout, result.stderr))
    notes = (*result.notes, *skill_notes(spec, result), *committed.notes, *saved.notes)
    seconds = spec.limits.seconds if result.timed_out else None
    output = CommandOutput(
        stdout=stdout,
        stderr=stderr,
        exit_code=result.exit_code,
        timed_out=result.timed_out,
        truncated=max(len(result.stdout), len(result.stderr)) > limit,
        duration_ms=result.duration_ms,
        changed=committed.changed,
        notes=notes,
        output_files=saved.paths,
    )
    text = format_report(stdout.encode(), stderr.encode(), result.exit_code, seconds, notes)
    return structured_reply(text, output)


def _sandbox(workspace_call: WorkspaceCall) -> SandboxSpec:
    assert workspace_call.target.sandbox
    return workspace_call.target.sandbox


def _provider(workspace_call: WorkspaceCall) -> Provider:
    name = _sandbox(workspace_call).config["provider"]
    provider = workspace_call.context.ports.sandboxes.get(name)
    if provider is None:
        raise CapabilityNotProvided(f"Sandbox setup failed: provider {name} is not available")
    return provider


def _schema_for_access(schema: Mapping[str, Any], access: ToolAccess) -> Mapping[str, Any]:
    return with_background(with_workspace(schema, access), access)


TOOL: Final = Tool(
    "bash",
    "Runs a command in the root of a workspace, or in an empty directory if there is none, and "
    "returns its output, errors and exit code. Changed files are saved; variables and other state "
    "are lost unless the sandbox is persistent. Your skills are in $CARREL_SKILLS, read-only.",
    BashArguments,
    _run,
    writes=True,
    destructive=True,
    approval_check=_approval_check,
    schema_for=_schema_for_access,
    results=(CommandOutput, BackgroundCommand),
    can_wait=True,
)
