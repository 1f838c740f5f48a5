"""What is run elsewhere: the command within its bounds, then a look at what it has left.

The scripts need bash, coreutils, findutils and tar, in GNU's manner. They are sent along with the
files, so a provider has to run nothing but `bash <script>`.
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
LOOK: Final = "look"
SEND: Final = "send"
WANTED: Final = "wanted"
WORK: Final = "work"
HOME: Final = "home"
TEMPORARY: Final = "tmp"
ENDED: Final = "ended"
LONGEST_LISTING: Final = 32 * 2**20


class RemotePaths(Struct, frozen=True):
    """Where things are on a machine elsewhere."""

    root: str
    """A directory of ours: the command's own directory is in it, beside the scripts."""
    temporary: str = ""
    """A directory of its own for what is temporary; beside the command's if empty."""
    keeper: str | None = None
    """The command line of the first process, where all others there are the command's: what is
    left of it can be killed then, however far it has gone from its parent."""
    counted: bool = False
    """Whether the provider counts processes, so that they need not be counted by their user."""
    confined: bool = False
    """Whether the provider sees to it that nobody there becomes another user."""

    @property
    def work(self) -> str:
        return f"{self.root}/{WORK}"

    @property
    def variables(self) -> dict[str, str]:
        """Those of every command, which it cannot be given otherwise."""
        temporary = self.temporary or f"{self.root}/{TEMPORARY}"
        home = f"{self.root}/{HOME}"
        return {"PATH": PATH, "HOME": home, "TMPDIR": temporary, "LANG": "C.UTF-8"}

    def script(self, name: str) -> list[str]:
        return ["bash", f"{self.root}/{name}"]


_KILLING: Final = """\
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
  [ "$(tr '\\0' ' ' 2>/dev/null </proc/1/cmdline)" = KEEPER ] || return 0
  printf '%s\\n' /proc/[0-9]* | end_all_but "$1"
}
"""
"""Of processes by their directories in /proc, all but some and their children are killed; a sweep
takes all there are, and never where others live, too."""

_RUN: Final = """\
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
    # Where it is lower already, there it stays.
    ulimit $bound 2>/dev/null || [ "$(ulimit ${bound% *})" -le "${bound#* }" ] || exit 125
  done
  exec timeout -k 2 SECONDS WALLS env -i VARIABLES bash -c COMMAND
) </dev/null >&5 2>&6 3>&- 4>&- 5>&- 6>&-
code=$?
ended=$(date +%s%N)
exec 5>&- 6>&-
sweep "$out $err"
is_heard() { ! kill -0 "$out" 2>/dev/null && ! kill -0 "$err" 2>/dev/null; }
for round in 1 2 3 4 5; do
  for _ in 1 2 3 4; do is_heard && break 2; sleep 0.02; done
  # Something of it lives on and holds its output.
  for pipe in $pipes; do
    pipe=${pipe#pipe:[} pipe=${pipe%]}
    find /proc/[0-9]*/fd -lname "pipe:\\[$pipe\\]" 2>/dev/null | end_all_but "$out $err"
  done
done
printf '%s %s\\n' "$code" "$(( (ended - began) / 1000000 ))" >ENDED
exit "$code"
"""
"""Both outputs are cut where they are made: what is beyond the bound never travels."""

_LOOK: Final = """\
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

_SEND: Final = """\
cd WORKDIR || exit 125
exec tar -cf - --format=gnu --no-recursion --hard-dereference -T WANTED
"""


def scripts(order: CommandSpec, place: RemotePaths) -> Mapping[str, bytes]:
    """The files that run a command and tell what came of it, by their names in the root."""
    words = {
        "WORKDIR": shlex.quote(place.work),
        "CONFINED": "" if place.confined else _WALLED,
        "WALLS": "" if place.confined else "setpriv --no-new-privs",
        "OUTPUT": str(order.bounds.output_bytes + 1),
        "BOUNDS": shlex.join(_bounds(order, place)),
        "SECONDS": str(order.bounds.seconds),
        "VARIABLES": shlex.join(_variables(order, place)),
        "COMMAND": shlex.quote(order.command),
        "ENDED": shlex.quote(f"{place.root}/{ENDED}"),
        "WANTED": shlex.quote(f"{place.root}/{WANTED}"),
        "LOOKING": "true" if order.files is not None else "false",
        "LISTING": str(LONGEST_LISTING),
        "KEEPER": shlex.quote(f"{place.keeper} " if place.keeper else "nobody"),
    }
    return {
        RUN: _filled(_KILLING + _RUN, words),
        LOOK: _filled(_KILLING + _LOOK, words),
        SEND: _filled(_SEND, words),
    }


_WORD: Final = re.compile(r"\b([A-Z]{5,})\b")
_WALLED: Final = 'command -v setpriv >/dev/null || { echo "setpriv is missing" >&2; exit 125; }'


def _bounds(order: CommandSpec, place: RemotePaths) -> list[str]:
    """For `ulimit`."""
    processes = [] if place.counted else [f"-u {order.bounds.processes}"]
    return [f"-f {order.bounds.disk_mb * 1024}", *processes]


def _variables(order: CommandSpec, place: RemotePaths) -> list[str]:
    return [f"{name}={value}" for name, value in {**order.env, **place.variables}.items()]


def _filled(script: str, words: Mapping[str, str]) -> bytes:
    """Each word once, in one pass, so that nothing in a command is taken for a word."""
    parts = _WORD.split(script)
    return "".join(words.get(part, part) for part in parts).encode()
