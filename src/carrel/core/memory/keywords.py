"""Deterministic keyword extraction, without a model."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

MAX_TAGS: Final = 8
MAX_TAG_BYTES: Final = 32
"""Size of a tag in UTF-8."""

GLOSSARY: Final = (
    *("backups", "backup", "embeddings", "embedding", "failover", "gateway", "glacier", "gpt"),
    *("kubernetes", "openai", "postgres", "router", "network", "vlan", "webhook", "s3", "kv"),
    *("respaldo", "enrutador", "sauvegarde", "passerelle", "netzwerk", "sicherung"),
    *("备份", "网关", "路由器", "バックアップ", "백업"),
)
"""Terms that are always tagged, also within longer words."""

_STOP_WORD_TEXT: Final = (
    # words too common in memories to be distinctive
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
    # file extensions
    "txt json yaml yml toml html css png jpg jpeg pdf csv log tmp bak lock exe"
)
_STOP_WORDS: Final = frozenset(_STOP_WORD_TEXT.split())

_COMPOUND: Final = re.compile(r"[^\W_]+(?:[._/-][^\W_]+)+")
_PART: Final = re.compile(r"[^\W_]+(?:['\u2019.][^\W_]+)*")
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")
_NUMBERED_FILE: Final = re.compile(r"[0-9]+(?:[._/-][0-9]+)*\.[^\W\d_]+")
"""A number with an extension, such as the `22.md` of a dated note."""
_HAN_OR_HANGUL: Final = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7a3]+")


def extract_tags(text: str, limit: int = MAX_TAGS) -> tuple[str, ...]:
    """At most `limit` tags: glossary terms, then compounds, then words."""
    folded = unicodedata.normalize("NFKC", text).lower()
    tags: dict[str, None] = {}
    for candidate in _candidates(folded):
        if len(tags) >= limit:
            break
        tag = _normalize_tag(candidate)
        if _is_informative(tag):
            tags[tag] = None
    return tuple(tags)


def _candidates(text: str) -> Iterator[str]:
    matched_terms = ""
    for term in GLOSSARY:
        if term in text and term not in matched_terms:  # "backups" must not also yield "backup"
            matched_terms += f" {term}"
            yield term
    yield from _COMPOUND.findall(text)
    yield from _PART.findall(text)


def _normalize_tag(candidate: str) -> str:
    stripped = candidate.strip("".join({c for c in candidate if not c.isalnum()}))
    return stripped.replace("_", "-")


def _is_informative(tag: str) -> bool:
    """Whether a candidate is distinctive enough to be a tag."""
    if not tag or len(tag.encode()) > MAX_TAG_BYTES or tag in _STOP_WORDS:
        return False
    if tag in GLOSSARY:
        return True
    if _DATE.fullmatch(tag) or _NUMBERED_FILE.fullmatch(tag):
        return False
    if not any(character.isalpha() for character in tag):
        return False
    return len(tag) >= (2 if _HAN_OR_HANGUL.fullmatch(tag) else 3)
