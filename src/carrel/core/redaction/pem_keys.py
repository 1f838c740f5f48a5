"""PEM private keys (`-----BEGIN … PRIVATE KEY-----`) in files, JSON and code.

All repetitions are possessive (`++`, `*+`) and parts that may contain a dash are bounded, so
scanning is linear. Groups use `(?>…)`, since early releases of Python 3.11 mishandle `++` and `*+`
after a group; they are bounded too, because `re` records each repetition of a group.
"""

from __future__ import annotations

import re

_LINE_EDGE = rb"[ \t\"'`,;>|#*+]*+"
"""Characters that indent, quote, comment or join lines."""

_END_OF_LINE = rb"(?:\\*+(?:\r\n|\r|\n)|\\++r\\++n|\\++[nr])"
"""A line end, also escaped as in JSON or continued by a backslash."""

_NEXT_LINE = _LINE_EDGE + _END_OF_LINE + _LINE_EDGE
_NEXT_LINES = rb"(?>(?:" + _LINE_EDGE + _END_OF_LINE + rb"){1,16})" + _LINE_EDGE
_ENDS_HERE = rb"(?=[\"'`]|" + _LINE_EDGE + rb"(?:" + _END_OF_LINE + rb"|-----|\Z))"

_BASE64 = rb"[0-9A-Za-z+/=]"
_MARKER = rb"\[REDACTED(?::[0-9A-Za-z._-]{1,128}+)?\]"
_BASE64_RUN = rb"(?>(?:" + _BASE64 + rb"++|" + _MARKER + rb"){1,64})"
"""Content of a line, possibly with markers of already redacted values."""

_OPENING = re.compile(
    rb"(?<=-----)BEGIN (?:[0-9A-Z]{1,16} ){0,4}PRIVATE KEY(?: BLOCK)?-----"
    rb"(?>(?:" + _NEXT_LINES + rb"[A-Za-z][0-9A-Za-z-]{0,30}+: [^\r\n\\\"]*+){0,8})"
)
_CLOSING = rb"-----END [0-9A-Z ]{0,64}+-----"

_BLOCK = re.compile(
    rb"(?P<body>(?>(?:" + _NEXT_LINES + _BASE64_RUN + rb"){1,4096}))"
    rb"(?:" + _NEXT_LINES + rb"|" + _LINE_EDGE + rb")" + _CLOSING
)
_ON_ONE_LINE = re.compile(
    rb"(?P<body>[ \t]*+"
    + _BASE64
    + rb"{40,}+(?>(?:[ \t]++"
    + _BASE64_RUN
    + rb"){0,4096}))[ \t]*+"
    + _CLOSING
)

_NOT_A_DIGEST = rb"(?![0-9A-Za-z+/=]*?(?<![0-9A-Za-z])[0-9a-fA-F]{32,128}+(?![0-9A-Za-z]))"
_LONG = (
    _NOT_A_DIGEST + rb"(?:" + _BASE64 + rb"{40,}+|" + _BASE64 + rb"{16,39}+" + _ENDS_HERE + rb")"
)
_LONG += rb"(?>(?:" + _MARKER + _BASE64 + rb"*+){0,64})"
_SHORT = _BASE64 + rb"{1,15}+" + _ENDS_HERE
_FIRST = rb"(?:" + _NEXT_LINES + rb"|[ \t]*+(?=" + _BASE64 + rb"{40}))" + _LONG
_FURTHER = rb"(?>(?:" + _NEXT_LINE + _LONG + rb"){0,4096})"
_LAST = rb"(?:" + _NEXT_LINE + _SHORT + rb")?"
_UNTERMINATED = re.compile(_FIRST + _FURTHER + _LAST)
_NOT_KEY_BYTES = re.compile(_MARKER + rb"|" + _END_OF_LINE + rb"|[^0-9A-Za-z+/]")


def find_pem_block(content: bytes, position: int) -> tuple[int, int]:
    """Start and end of the block whose `BEGIN` is at this position.

    Empty if there is none. An unterminated block extends over its base64 lines. Text that only
    mentions keys is no block.
    """
    opening = _OPENING.match(content, position)
    if opening is None:
        return position, position
    for pattern in (_BLOCK, _ON_ONE_LINE):
        block = pattern.match(content, opening.end())
        if block and _NOT_KEY_BYTES.sub(b"", block["body"]):
            return position - 5, block.end()
    unterminated = _UNTERMINATED.match(content, opening.end())
    return (position - 5, unterminated.end()) if unterminated else (position, position)
