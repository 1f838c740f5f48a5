"""Bash scripts that run a command within limits and list the files it leaves.

They need bash and GNU coreutils, findutils and tar. They are sent with the files, so a provider
only has to run `bash <script>`.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from carrel.ports.sandbox import CommandSpec

PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
RUN: Final = "run"
INSPECT: Final = "look"
SEND: Final = "send"
REQUESTED_FILES: Final = "wanted"
WORK_DIRECTORY: Final = "work"
HOME_DIRECTORY: Final = "home"
TEMPORARY_DIRECTORY: Final = "tmp"
END_FILE: Final = "ended"
MAX_LISTING_BYTES: Final = 32 * 2**20


class RemotePaths(Struct, frozen=True):
    """Paths and process properties of a remote machine."""

    root: str
    """Directory that holds the command's directory and the scripts."""
    temporary: str = ""
    """Directory for temporary files; below the root if empty."""
    init_command: str | None = None
    """Command line of process 1 if all other processes belong to the command.

    Then every remaining process can be killed, even if it left its process group.
    """
    provider_limits_processes: bool = False
    """Whether the provider limits processes, so that no per-user ulimit is needed."""
    provider_blocks_setuid: bool = False
    """Whether the provider prevents processes from changing their user."""

    @property
    def work(self) -> str:
        return f"{self.root}/{WORK_DIRECTORY}"

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables that a command cannot override."""
        temporary = self.temporary or f"{self.root}/{TEMPORARY_DIRECTORY}"
        home = f"{self.root}/{HOME_DIRECTORY}"
        return {"PATH": PATH, "HOME": home, "TMPDIR": temporary, "LANG": "C.UTF-8"}

    def script(self, name: str) -> list[str]:
        return ["bash", f"{self.root}/{name}"]


_KILL_FUNCTIONS: Final = """\
end_all_but() {
  local spared=" $$ $1 " pid parent key value
  while read -r pid; do
    pid=${pid#/proc/} pid=${pid%%/*} parent=
    while read -r key value; do
      if [ "$key" = PPid: ]; then parent=$value; break; fi
    done 2>/dev/null <"/proc/$pid/status"
    case "$spared" in *" $pid "* | *" $parent "*) continue ;; esac
    case "$pid" in 1 | $BASHPID) ;; *) kill -9 "$pid" 2>/dev/null ;; esac
  done
}
sweep() {
  [ "$(tr '\\0' ' ' 2>/dev/null </proc/1/cmdline)" = INITCMDLINE ] || return 0
  printf '%s\\n' /proc/[0-9]* | end_all_but "$1"
}
"""
"""Shell functions that kill processes listed by /proc directories, except some.

`sweep` kills all processes, but only if process 1 is ours.
"""

_RUN_TEMPLATE: Final = """\
cd WORKDIR || exit 125
CONFINED
exec 3>&1 4>&2
exec 5> >(head -c OUTPUT >&3 4>&-; exec cat >/dev/null 3>&- 4>&-); out=$!
exec 6> >(exec 5>&-; head -c OUTPUT >&4 3>&-; exec cat >/dev/null 3>&- 4>&-); err=$!
pipes="$(readlink /proc/$$/fd/5) $(readlink /proc/$$/fd/6)"
began=$(date +%s%N)
(
  umask 022
  ulimit -c 0
  for bound in BOUNDS; do
    # A lower existing limit stays.
    ulimit $bound 2>/dev/null || [ "$(ulimit ${bound% *})" -le "${bound#* }" ] || exit 125
  done
  exec timeout -k 2 SECONDS PREFIX env -i VARIABLES bash -c COMMAND
) </dev/null >&5 2>&6 3>&- 4>&- 5>&- 6>&-
code=$?
ended=$(date +%s%N)
exec 5>&- 6>&-
sweep "$out $err"
is_output_closed() { ! kill -0 "$out" 2>/dev/null && ! kill -0 "$err" 2>/dev/null; }
for round in 1 2 3 4 5; do
  for _ in 1 2 3 4; do is_output_closed && break 2; sleep 0.02; done
  # A process of the command still holds its output open.
  for pipe in $pipes; do
    pipe=${pipe#pipe:[} pipe=${pipe%]}
    find /proc/[0-9]*/fd -lname "pipe:\\[$pipe\\]" 2>/dev/null | end_all_but "$out $err"
  done
done
printf '%s %s\\n' "$code" "$(( (ended - began) / 1000000 ))" >ENDED
exit "$code"
"""
"""Output is truncated on the machine, so excess bytes are never transferred."""

_INSPECT_TEMPLATE: Final = """\
sweep ''
cd WORKDIR || exit 125
{
  cat ENDED
  if LOOKING; then
    chmod -R u+rwX . 2>/dev/null
    find . -mindepth 1 ! -type d -printf '%y\\0%m\\0%s\\0%P\\0%l\\0'
    printf 'hashes\\0'
    find . -mindepth 1 -type f -exec sha256sum -z -- {} +
    printf 'end\\0'
  fi
} | head -c LISTING
"""

_SEND_TEMPLATE: Final = """\
cd WORKDIR || exit 125
exec tar -cf - --format=gnu --no-recursion --hard-dereference -T WANTED
"""


def build_scripts(spec: CommandSpec, paths: RemotePaths) -> Mapping[str, bytes]:
    """Return the scripts of a command by file name in the root."""
    values = {
        "WORKDIR": shlex.quote(paths.work),
        "CONFINED": "" if paths.provider_blocks_setuid else _REQUIRE_SETPRIV,
        "PREFIX": "" if paths.provider_blocks_setuid else "setpriv --no-new-privs",
        "OUTPUT": str(spec.limits.output_bytes + 1),
        "BOUNDS": shlex.join(_ulimits(spec, paths)),
        "SECONDS": str(spec.limits.seconds),
        "VARIABLES": shlex.join(_environment(spec, paths)),
        "COMMAND": shlex.quote(spec.command),
        "ENDED": shlex.quote(f"{paths.root}/{END_FILE}"),
        "WANTED": shlex.quote(f"{paths.root}/{REQUESTED_FILES}"),
        "LOOKING": "true" if spec.files is not None else "false",
        "LISTING": str(MAX_LISTING_BYTES),
        "INITCMDLINE": shlex.quote(f"{paths.init_command} " if paths.init_command else "nobody"),
    }
    return {
        RUN: _fill_template(_KILL_FUNCTIONS + _RUN_TEMPLATE, values),
        INSPECT: _fill_template(_KILL_FUNCTIONS + _INSPECT_TEMPLATE, values),
        SEND: _fill_template(_SEND_TEMPLATE, values),
    }


_PLACEHOLDER: Final = re.compile(r"\b([A-Z]{5,})\b")
_REQUIRE_SETPRIV: Final = (
    'command -v setpriv >/dev/null || { echo "setpriv is missing" >&2; exit 125; }'
)


def _ulimits(spec: CommandSpec, paths: RemotePaths) -> list[str]:
    """Arguments of `ulimit`."""
    processes = [] if paths.provider_limits_processes else [f"-u {spec.limits.processes}"]
    return [f"-f {spec.limits.disk_mb * 1024}", *processes]


def _environment(spec: CommandSpec, paths: RemotePaths) -> list[str]:
    return [f"{name}={value}" for name, value in {**spec.env, **paths.variables}.items()]


def _fill_template(script: str, values: Mapping[str, str]) -> bytes:
    """Replace placeholders in one pass, so that those in the command stay."""
    parts = _PLACEHOLDER.split(script)
    return "".join(values.get(part, part) for part in parts).encode()
