"""List of all agent tools."""

from __future__ import annotations

from typing import Final

from carrel.tools.builtin import (
    approval_result,
    async_status,
    bash,
    edit,
    forget,
    glob,
    grep,
    ls,
    memory,
    memory_checkpoint,
    memory_history,
    memory_search,
    my_stats,
    read,
    recall,
    remember,
    session_logs,
    skill,
    what_do_i_know,
    who_am_i,
    workspace_delete,
    workspace_list,
    workspace_publish,
    workspace_read,
    workspace_write,
    write,
)
from carrel.tools.tool import Tool

ALL_TOOLS: Final[tuple[Tool, ...]] = (
    approval_result.TOOL,
    async_status.TOOL,
    bash.TOOL,
    edit.TOOL,
    forget.TOOL,
    glob.TOOL,
    grep.TOOL,
    ls.TOOL,
    memory.TOOL,
    memory_checkpoint.TOOL,
    memory_history.TOOL,
    memory_search.TOOL,
    my_stats.TOOL,
    read.TOOL,
    recall.TOOL,
    remember.TOOL,
    session_logs.TOOL,
    skill.TOOL,
    what_do_i_know.TOOL,
    who_am_i.TOOL,
    workspace_delete.TOOL,
    workspace_list.TOOL,
    workspace_publish.TOOL,
    workspace_read.TOOL,
    workspace_write.TOOL,
    write.TOOL,
)
"""All tools, sorted by name."""
