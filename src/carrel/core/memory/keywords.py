"""What a text is about, in a few words: no model, the same text always gives the same."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

MOST: Final = 8
LONGEST: Final = 32
"""Bytes of a tag, in UTF-8."""

GLOSSARY: Final = (
    *("backups", "backup", "embeddings", "embedding", "failover", "gateway", "glacier", "gpt"),
    *("kubernetes", "openai", "postgres", "router", "network", "vlan", "webhook", "s3", "kv"),
    *("respaldo", "enrutador", "sauvegarde", "passerelle", "netzwerk", "sicherung"),
    *("备份", "网关", "路由器", "バックアップ", "백업"),
)
"""Terms that are worth a tag wherever they stand, whole or within a longer word."""

_USUAL: Final = (
    # what is said of everything that is remembered, and so tells nothing apart
    "memory memories session sessions note notes file files agent agents build builds deploy main "
    "today tomorrow yesterday work works task tasks user users thing things stuff system project "
    "code data item items list text line lines word words name names time times day days week "
    "please thanks yes always never remember recall forget update updates change changes using "
    # English
    "the and for are but not you all any can her was one our out has him his how its may new now "
    "old see two way who did get let put say she too use that this with from they them then than "
    "have been were will would could should about after again also because before being between "
    "both down during each even every here into just like made make many more most much must only "
    "other over same some such their there these those through under until upon very what when "
    "where which while whom whose why your yours does done doing had "
    # Spanish
    "los las una uno unos unas del por para con sin que como pero más sus este esta estos estas "
    "ese esa eso fue han hay muy sobre entre cuando donde "
    # what files are called
    "txt json yaml yml toml html css png jpg jpeg pdf csv log tmp bak lock exe"
)
_STOP: Final = frozenset(_USUAL.split())

_COMPOUND: Final = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)+")
_PART: Final = re.compile(r"[^\W_]+(?:['\u2019.][^\W_]+)*")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_HAN: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3]+")


def concepts(text: str, most: int = MOST) -> tuple[str, ...]:
    """At most so many tags: known terms first, then compounds, then words, as they come."""
    folded = unicodedata.normalize("NFKC", text).lower()
    found: dict[str, None] = {}
    for candidate in _candidates(folded):
        if len(found) >= most:
            break
        tag = _normal(candidate)
        if _tells(tag):
            found[tag] = None
    return tuple(found)


def _candidates(text: str) -> Iterator[str]:
    taken = ""
    for term in GLOSSARY:
        if term in text and term not in taken:  # backups are not backup once more
            taken += f" {term}"
            yield term
    yield from _COMPOUND.findall(text)
    yield from _PART.findall(text)


def _normal(candidate: str) -> str:
    kept = candidate.strip("".join({c for c in candidate if not c.isalnum()}))
    return kept.replace("_", "-")


def _tells(tag: str) -> bool:
    """Whether it says anything of what a text is about."""
    if not tag or len(tag.encode()) > LONGEST or tag in _STOP:
        return False
    if tag in GLOSSARY:
        return True
    if tag.isdigit() or _DATE.fullmatch(tag) or not any(one.isalpha() for one in tag):
        return False
    return len(tag) >= (2 if _HAN.fullmatch(tag) else 3)
