"""The language of grep's patterns: what two engines understand alike, said so that they must.

A pattern is read here and spelled anew, for re2 and for ripgrep, so that both find the same lines;
what is not of this language is refused here with the same words, whichever engine there is. See
docs/decisions/0024-one-language-for-grep.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from carrel.core.errors import ValidationError
from carrel.core.search import char_ranges
from carrel.core.search.char_ranges import Ranges, joined, others, spelled

LONGEST: Final = 1000
_DEEPEST: Final = 40
_MOST_REPEATED: Final = 1000
_CLASSES: Final = {
    "d": char_ranges.DIGIT,
    "w": char_ranges.WORD,
    "s": char_ranges.BLANK,
    "D": char_ranges.NO_DIGIT,
    "W": char_ranges.NO_WORD,
    "S": char_ranges.NO_BLANK,
}
_CONTROLS: Final = {"t": 9, "v": 11, "f": 12, "r": 13, "a": 7}
_FAMILIES: Final = re.compile(
    r"p(?:([LMNPSZ])|\{(L[ulmot]?|M[nce]?|N[dlo]?|P[cdseifo]?|S[mcko]?|Z[slp]?)\})"
)
_HEX: Final = re.compile(r"x(?:([0-9A-Fa-f]{2})|\{([0-9A-Fa-f]{1,6})\})")
_COUNT: Final = re.compile(r"\{([0-9]{1,6})(,?)([0-9]{0,6})\}")
_GROUP: Final = re.compile(r"\?(?:P?<[A-Za-z_][A-Za-z0-9_]*>|(-?i)?:)")
_FLAGS: Final = re.compile(r"\(\?(-?i)\)")
_NEGATED: Final = re.compile(r"P(?:[A-Z]|\{)")


class CompiledPattern(NamedTuple):
    """One pattern, as either engine is told it."""

    re2: str
    ripgrep: str


@lru_cache(maxsize=256)
def translate_pattern(pattern: str, *, ignoring_case: bool = False) -> CompiledPattern:
    """Raises Malformed."""
    if len(pattern) > LONGEST:
        raise ValidationError(f"Invalid pattern: it has more than {LONGEST} characters")
    body = _Reader(pattern).whole()
    said = ("(?mi)" if ignoring_case else "(?m)") + body
    return CompiledPattern(_told(said, _RE2), _told(said, _RIPGREP))


_EDGE, _NO_EDGE, _HALVES = "\0b", "\0B", "\0s"
_EDGES: Final = {"b": _EDGE, "B": _NO_EDGE}
"""What the engines have different words for. No pattern is spelled with a NUL."""
_RE2: Final = {_EDGE: r"\b", _NO_EDGE: r"\B", _HALVES: r"\x{d800}-\x{dfff}"}
_RIPGREP: Final = {_EDGE: r"(?-u:\b)", _NO_EDGE: r"(?-u:\B)", _HALVES: ""}


def _told(said: str, words: Mapping[str, str]) -> str:
    for mark, word in words.items():
        said = said.replace(mark, word)
    return said


def _wrong(what: str) -> ValidationError:
    return ValidationError(f"Invalid pattern: {what}")


class _Reader:
    """Reads a pattern from left to right, and spells as it goes."""

    def __init__(self, text: str) -> None:
        self._text, self._at, self._depth = text, 0, 0

    def whole(self) -> str:
        said, _ = self._alternatives()
        if self._at < len(self._text):
            raise _wrong("a ) closes nothing")
        return said

    def _alternatives(self) -> tuple[str, int]:
        """Up to the end or a closing bracket, and how often anything in it is repeated at most."""
        said: list[str] = []
        most = 1
        while (character := self._text[self._at : self._at + 1]) not in {"", ")"}:
            if flags := _FLAGS.match(self._text, self._at):
                self._at = flags.end()
                said.append(flags[0])
            elif character == "|":
                self._at += 1
                said.append(character)
            else:
                one, repeated = self._repeated()
                said.append(one)
                most = max(most, repeated)
        return "".join(said), most

    def _repeated(self) -> tuple[str, int]:
        said, most = self._one()
        start = self._at
        suffix, times = self._suffix()
        if not suffix:
            return said, most
        if said in {"^", "$"} or said in _EDGES.values():
            raise _wrong("what has no width cannot be repeated")
        if self._suffix()[0]:
            raise _wrong(f"a repetition follows another: {self._text[start : self._at]}")
        if most * times > _MOST_REPEATED:
            raise _wrong(f"it repeats more than {_MOST_REPEATED} times")
        return f"(?:{said}){suffix}", most * times

    def _suffix(self) -> tuple[str, int]:
        """How often the one before is repeated; a brace that says nothing of that is a letter."""
        rest = self._text[self._at : self._at + 1]
        counted = _COUNT.match(self._text, self._at)
        if rest and rest in "*+?":
            said, times = rest, 1
            self._at += 1
        elif counted:
            said, times = self._count(counted)
        else:
            return "", 1
        if self._text.startswith("?", self._at):
            self._at += 1
            said += "?"
        return said, times

    def _count(self, counted: re.Match[str]) -> tuple[str, int]:
        self._at = counted.end()
        least, most = int(counted[1]), int(counted[3] or 0)
        if counted[3] and (not counted[2] or most < least):
            raise _wrong(f"{counted[0]} is no repetition")
        if counted[2]:
            said = f"{{{least},{most}}}" if counted[3] else f"{{{least},}}"
        else:
            said = f"{{{least}}}"
        return said, max(least, most, 1)

    def _one(self) -> tuple[str, int]:
        character = self._text[self._at]
        self._at += 1
        if character == "(":
            return self._group()
        if character == "[":
            return self._bracket(), 1
        if character == "\\":
            return self._escape(), 1
        if character == ".":
            return f"[{spelled(others(char_ranges.NEWLINE))}]", 1
        if character in "^$":
            return character, 1
        if character in "*+?":
            raise _wrong(f"there is nothing for {character} to repeat")
        return _letter(ord(character)), 1

    def _group(self) -> tuple[str, int]:
        opening = "(?:"
        if self._text.startswith("?", self._at):
            kind = _GROUP.match(self._text, self._at)
            if not kind:
                raise _wrong("look-around and this kind of group are not supported")
            self._at = kind.end()
            opening = f"(?{kind[1] or ''}:"
        self._depth += 1
        if self._depth > _DEEPEST:
            raise _wrong("its groups are nested too deeply")
        said, most = self._alternatives()
        self._depth -= 1
        if not self._text.startswith(")", self._at):
            raise _wrong("a ( is not closed")
        self._at += 1
        return f"{opening}{said})", most

    def _escape(self) -> str:
        letter = self._text[self._at : self._at + 1]
        if letter in _EDGES:
            self._at += 1
            return _EDGES[letter]
        if family := self._family():
            return f"[{family}]"
        found = self._class() or self._character()
        return f"[{spelled(found)}]"

    def _family(self) -> str:
        """A kind of characters by its name in Unicode."""
        if _NEGATED.match(self._text, self._at):
            raise _wrong(r"say [^\p{…}] for what is not of a kind")
        family = _FAMILIES.match(self._text, self._at)
        if not family:
            return ""
        self._at = family.end()
        return f"\\p{{{family[1] or family[2]}}}"

    def _class(self) -> Ranges | None:
        found = _CLASSES.get(self._text[self._at : self._at + 1])
        if found is not None:
            self._at += 1
        return found

    def _character(self) -> Ranges:
        """One that a backslash stands before."""
        letter = self._text[self._at : self._at + 1]
        if number := _HEX.match(self._text, self._at):
            self._at = number.end()
            return self._admitted(int(number[1] or number[2], 16))
        self._at += 1
        if letter in _CONTROLS:
            code = _CONTROLS[letter]
            return ((code, code),)
        if letter == "n":
            raise _wrong("a line is searched at a time, and so \\n is in none")
        if not letter or letter.isalnum() or not letter.isascii():
            raise _wrong(f"\\{letter} is not supported")
        return ((ord(letter), ord(letter)),)

    def _admitted(self, code: int) -> Ranges:
        if code == 10:
            raise _wrong("a line is searched at a time, and so \\n is in none")
        if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
            raise _wrong("there is no such character")
        return ((code, code),)

    def _bracket(self) -> str:
        negated = self._text.startswith("^", self._at)
        self._at += negated
        found: list[tuple[int, int]] = []
        families = ""
        first = True
        while first or not self._text.startswith("]", self._at):
            if self._at >= len(self._text):
                raise _wrong("a [ is not closed")
            first = False
            if self._text.startswith("\\", self._at):
                self._at += 1
                if family := self._family():
                    families += family
                    continue
                self._at -= 1
            found.extend(self._span())
        self._at += 1
        if not negated:
            return f"[{spelled(joined(found))}{families}]"
        return f"[^{spelled(joined((*found, *char_ranges.NEWLINE)))}{families}{_HALVES}]"

    def _span(self) -> Ranges:
        first = self._member()
        dash = self._text[self._at : self._at + 2]
        if not _is_one(first) or not dash.startswith("-") or dash in {"-", "-]"}:
            return first
        self._at += 1
        last = self._member()
        if not (_is_one(first) and _is_one(last) and first <= last):
            raise _wrong("a range in brackets goes from one character to a later one")
        return others(joined((*others(((first[0][0], last[0][0]),)), *char_ranges.NEWLINE)))

    def _member(self) -> Ranges:
        """One thing between brackets."""
        if self._at >= len(self._text):
            raise _wrong("a [ is not closed")
        if self._text.startswith("[:", self._at):
            end = self._text.find(":]", self._at)
            name = self._text[self._at + 2 : end] if end > 0 else ""
            if name not in char_ranges.POSIX:
                raise _wrong("there is no such class in [: :]")
            self._at = end + 2
            return char_ranges.POSIX[name]
        character = self._text[self._at]
        self._at += 1
        if character == "\\":
            if self._text.startswith("b", self._at):
                raise _wrong("\\b is not supported in brackets")
            return self._class() or self._character()
        if self._text[self._at - 1 : self._at + 1] in {"&&", "--", "~~"}:
            raise _wrong("sets of characters cannot be combined")
        return ((ord(character), ord(character)),)


def _is_one(found: Ranges) -> bool:
    return len(found) == 1 and found[0][0] == found[0][1]


def _letter(code: int) -> str:
    if code == 10:
        raise _wrong("a line is searched at a time, and so no pattern has a line feed")
    return f"\\x{{{code:x}}}"
