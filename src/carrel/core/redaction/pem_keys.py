"""Private keys in armour: `-----BEGIN … PRIVATE KEY-----`, as files, JSON and code hold them.

Nothing here gives back what it has taken (`++`, `*+`), and what may hold a dash is at most a few
lines: a block is not read into the next one, so that reading all of them takes linear time. Groups
say so by `(?>…)`, since early releases of Python 3.11 lose their place after a group with `++` or
`*+`; they are bounded too, as `re` keeps a record of each repetition of a group.
"""

from __future__ import annotations

import re

_EDGE = rb"[ \t\"'`,;>|#*+]*+"
"""What indents, quotes, comments or joins lines."""

_END_OF_LINE = rb"(?:\\*+(?:\r\n|\r|\n)|\\++r\\++n|\\++[nr])"
"""A line end, be it escaped as in JSON or continued by a backslash."""

_NEXT_LINE = _EDGE + _END_OF_LINE + _EDGE
_NEXT_LINES = rb"(?>(?:" + _EDGE + _END_OF_LINE + rb"){1,16})" + _EDGE
_ENDS_HERE = rb"(?=[\"'`]|" + _EDGE + rb"(?:" + _END_OF_LINE + rb"|-----|\Z))"

_BASE64 = rb"[0-9A-Za-z+/=]"
_MARKER = rb"\[REDACTED(?::[0-9A-Za-z._-]{1,128}+)?\]"
_RUN = rb"(?>(?:" + _BASE64 + rb"++|" + _MARKER + rb"){1,64})"
"""What a line holds, also where an exact value inside it has been replaced before."""

_OPENING = re.compile(
    rb"(?<=-----)BEGIN (?:[0-9A-Z]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?>(?:" + _NEXT_LINES + rb"[A-Za-z][0-9A-Za-z-]{0,30}+: [^\r\n\\\"]*+){0,8})"
)
_CLOSING = rb"-----END [0-9A-Z ]{0,64}+-----"

_BLOCK = re.compile(
    rb"(?P<body>(?>(?:" + _NEXT_LINES + _RUN + rb"){1,4096}))"
    rb"(?:" + _NEXT_LINES + rb"|" + _EDGE + rb")" + _CLOSING
)
_ON_ONE_LINE = re.compile(
    rb"(?P<body>[ \t]*+"
    + _BASE64
    + rb"{40,}+(?>(?:[ \t]++"
    + _RUN
    + rb"){0,4096}))[ \t]*+"
    + _CLOSING
)

_NO_DIGEST = rb"(?![0-9A-Za-z+/=]*?(?<![0-9A-Za-z])[0-9a-fA-F]{32,128}+(?![0-9A-Za-z]))"
_LONG = _NO_DIGEST + rb"(?:" + _BASE64 + rb"{40,}+|" + _BASE64 + rb"{16,39}+" + _ENDS_HERE + rb")"
_LONG += rb"(?>(?:" + _MARKER + _BASE64 + rb"*+){0,64})"
_SHORT = _BASE64 + rb"{1,15}+" + _ENDS_HERE
_FIRST = rb"(?:" + _NEXT_LINES + rb"|[ \t]*+(?=" + _BASE64 + rb"{40}))" + _LONG
_FURTHER = rb"(?>(?:" + _NEXT_LINE + _LONG + rb"){0,4096})"
_LAST = rb"(?:" + _NEXT_LINE + _SHORT + rb")?"
_CUT_SHORT = re.compile(_FIRST + _FURTHER + _LAST)
_NO_KEY = re.compile(_MARKER + rb"|" + _END_OF_LINE + rb"|[^0-9A-Za-z+/]")


def read_armour(content: bytes, at: int) -> tuple[int, int]:
    """The block whose `BEGIN` stands here, from its first dash to its last; empty if it is none.

    A block that never ends goes as far as its lines of base64. What only speaks of keys, with
    words or an ellipsis between the two lines, is no block.
    """
    opening = _OPENING.match(content, at)
    if opening is None:
        return at, at
    for pattern in (_BLOCK, _ON_ONE_LINE):
        block = pattern.match(content, opening.end())
        if block and _NO_KEY.sub(b"", block["body"]):
            return at - 5, block.end()
    cut = _CUT_SHORT.match(content, opening.end())
    return (at - 5, cut.end()) if cut else (at, at)
