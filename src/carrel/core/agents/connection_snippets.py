"""Snippets that connect a runtime or an MCP client to an agent."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

from msgspec import Struct

from carrel.core.agents.runtime_snippets import RUNTIME_SNIPPETS

KEY_PLACEHOLDER: Final = "carrel_YOUR_KEY"
"""Stands for the key in snippets; no key contains it."""

Language = Literal["shell", "python", "json", "toml"]


class ConnectionTarget(Struct, frozen=True):
    """What a snippet connects to."""

    url: str
    """Base URL of the server."""
    slug: str

    @property
    def mcp_url(self) -> str:
        return f"{self.url}/mcp/agents/{self.slug}"


class ConnectionSnippet(Struct, frozen=True):
    """Code, a command or configuration, to be copied."""

    id: str
    name: str
    group: Literal["runtime", "mcp"]
    language: Language
    text: str
    install: str = ""
    """Command that installs what the snippet needs."""
    file: str = ""
    """Configuration file that the snippet belongs into."""


def connection_snippets(target: ConnectionTarget) -> Sequence[ConnectionSnippet]:
    """Return the snippets, with a placeholder for the key."""
    return (
        ConnectionSnippet("curl", "curl", "runtime", "shell", _curl(target)),
        *(
            ConnectionSnippet(
                snippet.id,
                snippet.name,
                "runtime",
                "python",
                _python(snippet.text, target),
                install=f'pip install "carrel-client{snippet.extras}"',
            )
            for snippet in RUNTIME_SNIPPETS
        ),
        *(
            ConnectionSnippet(id, name, "mcp", language, write(target), file=file)
            for id, name, language, file, write in _MCP_CLIENTS
        ),
    )


def _curl(target: ConnectionTarget) -> str:
    body = json.dumps({"agentId": target.slug, "include": ["prompt", "tools"]})
    return "\n".join(
        (
            f"export CARREL_URL={_shell_word(target.url)}",
            f"export CARREL_TOKEN={KEY_PLACEHOLDER}",
            'curl -sS -X POST "$CARREL_URL/v1/runs" \\',
            '  -H "Authorization: Bearer $CARREL_TOKEN" \\',
            '  -H "Content-Type: application/json" \\',
            f"  -d {_shell_word(body)}",
            "",
        )
    )


def _shell_word(text: str) -> str:
    """Quote a word for a shell."""
    return "'" + text.replace("'", "'\"'\"'") + "'"


def _python(text: str, target: ConnectionTarget) -> str:
    replacements = {"URL": target.url, "KEY": KEY_PLACEHOLDER, "SLUG": target.slug}
    for name, value in replacements.items():
        text = text.replace(f'"{name}"', json.dumps(value))
    return text.lstrip("\n")


def _bearer() -> Mapping[str, str]:
    return {"Authorization": f"Bearer {KEY_PLACEHOLDER}"}


def _json_text(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


def _claude_code(target: ConnectionTarget) -> str:
    header = f"Authorization: Bearer {KEY_PLACEHOLDER}"
    return (
        f"claude mcp add --transport http {target.slug} {_shell_word(target.mcp_url)} \\\n"
        f"  --header {_shell_word(header)}\n"
    )


def _claude_desktop(target: ConnectionTarget) -> str:
    server = {
        "command": "carrel",
        "args": ["mcp", target.slug, "--url", target.url],
        "env": {"CARREL_TOKEN": KEY_PLACEHOLDER},
    }
    return _json_text({"mcpServers": {target.slug: server}})


def _cursor(target: ConnectionTarget) -> str:
    server = {"url": target.mcp_url, "headers": _bearer()}
    return _json_text({"mcpServers": {target.slug: server}})


def _vs_code(target: ConnectionTarget) -> str:
    server = {"type": "http", "url": target.mcp_url, "headers": _bearer()}
    return _json_text({"servers": {target.slug: server}})


def _codex(target: ConnectionTarget) -> str:
    return (
        f"[mcp_servers.{target.slug}]\n"
        f"url = {json.dumps(target.mcp_url)}\n"
        f'http_headers = {{ "Authorization" = "Bearer {KEY_PLACEHOLDER}" }}\n'
    )


def _gemini(target: ConnectionTarget) -> str:
    server = {"httpUrl": target.mcp_url, "headers": _bearer()}
    return _json_text({"mcpServers": {target.slug: server}})


def _windsurf(target: ConnectionTarget) -> str:
    server = {"serverUrl": target.mcp_url, "headers": _bearer()}
    return _json_text({"mcpServers": {target.slug: server}})


_Writer = Callable[[ConnectionTarget], str]
_MCP_CLIENTS: Final[tuple[tuple[str, str, Language, str, _Writer], ...]] = (
    ("claude-code", "Claude Code", "shell", "", _claude_code),
    ("claude-desktop", "Claude Desktop", "json", "claude_desktop_config.json", _claude_desktop),
    ("cursor", "Cursor", "json", "~/.cursor/mcp.json", _cursor),
    ("vs-code", "VS Code", "json", ".vscode/mcp.json", _vs_code),
    ("codex", "Codex", "toml", "~/.codex/config.toml", _codex),
    ("gemini-cli", "Gemini CLI", "json", "~/.gemini/settings.json", _gemini),
    ("windsurf", "Windsurf", "json", "~/.codeium/windsurf/mcp_config.json", _windsurf),
)
