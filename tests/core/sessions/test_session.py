"""Transcripts as JSON lines round-trip, and unreadable lines are skipped."""

from __future__ import annotations

import json
import re
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from carrel.core.errors import ValidationError
from carrel.core.runs import Audience
from carrel.core.sessions.session import (
    Session,
    SpeakerRole,
    Transcript,
    TranscriptEntry,
    TranscriptHeader,
    complete_lines_length,
    encode_entries,
    encode_entry,
    encode_header,
    parse_transcript,
    truncate,
)
from carrel.core.sessions.session_ids import (
    new_session_id,
    number_from_session_id,
    parse_session_id,
    session_id_from_number,
    transcript_file_name,
)

CONTROLS = [*range(32), *range(127, 160)]
ID = "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"
AT = 1_777_024_800_123
SESSION = Session("ten_1", ID, "kate", Audience.MAIN, "telegram", AT)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
names = st.text("abc:-_1", min_size=1, max_size=12)
moments = st.integers(0, 4_000_000_000_000)
transcript_entries = st.builds(
    TranscriptEntry,
    sequence=st.just(0),
    at=moments,
    role=st.sampled_from(SpeakerRole),
    content=texts,
    message=st.none() | names,
    plugin=st.just("") | names,
    sender=st.none() | names,
    item=st.none() | st.just('{"type":"text","n":[1,2.5]}'),
    run=st.none() | names,
)


def numbered(entries: list[TranscriptEntry]) -> tuple[TranscriptEntry, ...]:
    return tuple(replace(s, sequence=n) for n, s in enumerate(entries, 1))


def test_a_header_is_encoded_in_the_transcript_format() -> None:
    assert encode_header(SESSION, "kate") == (
        b'{"type":"session","version":1,"id":"5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c",'
        b'"timestamp":"2026-04-24T10:00:00.123Z","agent_id":"kate","source_plugin":"telegram"}\n'
    )


def test_an_entry_is_encoded_in_the_transcript_format() -> None:
    entry = TranscriptEntry(1, AT, SpeakerRole.USER, "hello", "m-1", "telegram", "user123")
    assert encode_entry(entry) == (
        b'{"type":"entry","timestamp":"2026-04-24T10:00:00.123Z","role":"user","content":"hello",'
        b'"message_id":"m-1","source_plugin":"telegram","sender_id":"user123"}\n'
    )


def test_an_encoded_entry_always_has_its_channel_and_omits_other_empty_fields() -> None:
    assert encode_entry(TranscriptEntry(2, AT, SpeakerRole.ASSISTANT, "hello Luis")) == (
        b'{"type":"entry","timestamp":"2026-04-24T10:00:00.123Z","role":"assistant",'
        b'"content":"hello Luis","source_plugin":""}\n'
    )


def test_an_empty_source_plugin_equals_a_missing_one() -> None:
    prefix = b'{"type":"entry","timestamp":"2026-04-24T10:00:00Z","role":"user","content":"x"'
    with_one, without = (
        parse_transcript(prefix + b',"source_plugin":""}\n'),
        parse_transcript(prefix + b"}\n"),
    )
    assert with_one == without
    assert with_one.entries[0].plugin == ""


@given(st.lists(transcript_entries, max_size=6), names, moments)
def test_an_encoded_transcript_round_trips(
    entries: list[TranscriptEntry], plugin: str, at: int
) -> None:
    session = Session("ten_1", ID, "kate", Audience.SHARED, plugin, at)
    written = encode_header(session, "kate") + encode_entries(entries)
    assert parse_transcript(written) == Transcript(
        TranscriptHeader(ID, at, "kate", plugin), numbered(entries)
    )
    assert len(written.splitlines()) >= 1 + len(entries)
    assert [json.loads(row)["type"] for row in written.split(b"\n")[:-1]] == [
        "session",
        *["entry"] * len(entries),
    ]


@given(st.lists(transcript_entries, min_size=1, max_size=5), st.data())
def test_a_torn_file_loses_only_its_last_line(
    entries: list[TranscriptEntry], data: st.DataObject
) -> None:
    written = encode_header(SESSION, "kate") + encode_entries(entries)
    last = len(encode_entry(entries[-1]))
    torn = written[: len(written) - data.draw(st.integers(2, last - 1))]
    assert parse_transcript(torn).entries == numbered(entries)[:-1]
    assert torn[: complete_lines_length(torn)] == encode_header(SESSION, "kate") + encode_entries(
        entries[:-1]
    )


@pytest.mark.parametrize(
    "unreadable",
    [
        b"",
        b"   \r",
        b"not json",
        b'{"type":"compact_boundary","uuid":"x"}',
        b'{"type":"entry","role":"user"}',
        b'{"type":"entry","timestamp":"never","role":"user","content":"x"}',
        b'{"type":"entry","timestamp":"2026-04-24T10:00:00Z","role":"judge","content":"x"}',
        b'{"type":"entry","timestamp":"2026-04-24T10:00:00Z","role":"user","content":"\xff"}',
        b"[" * 100_000,
    ],
)
def test_an_unreadable_line_is_skipped_alone(unreadable: bytes) -> None:
    entries = [TranscriptEntry(n, AT, SpeakerRole.TOOL, f"{n}") for n in (1, 2)]
    transcript = parse_transcript(
        encode_header(SESSION, "kate")
        + encode_entry(entries[0])
        + unreadable
        + b"\n"
        + encode_entry(entries[1])
    )
    assert transcript.entries == tuple(entries)
    assert transcript.skipped == bool(unreadable.strip())


def test_unknown_fields_are_ignored_and_a_second_header_is_skipped() -> None:
    prefix = b'{"type":"entry","timestamp":"2026-04-24T12:00:00+02:00","role":"user","content":"x",'
    transcript = parse_transcript(encode_header(SESSION, "kate") * 2 + prefix + b'"mood":"fine"}\n')
    assert transcript.header == TranscriptHeader(ID, AT, "kate", "telegram")
    assert [entry.at for entry in transcript.entries] == [1_777_024_800_000]
    assert transcript.skipped == 1


@given(st.uuids())
def test_every_form_of_a_uuid_is_an_id_of_its_own(id: UUID) -> None:
    """A runtime finds a session by the very id that it sent, such as `uuid4().hex`."""
    spellings = [str(id), str(id).upper(), id.hex, f"{{{id}}}", id.urn]
    assert [parse_session_id(spelling) for spelling in spellings] == spellings


@given(st.uuids())
def test_the_number_of_a_new_id_gives_it_back(id: UUID) -> None:
    assert session_id_from_number(number_from_session_id(str(id))) == str(id)


@given(st.text())
def test_a_new_session_id_is_a_random_uuid(seed: str) -> None:
    generated = UUID(new_session_id(seed))
    assert (str(generated), generated.version) == (new_session_id(seed), 4)
    assert parse_session_id(str(generated)) == str(generated)


SESSION_IDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=[chr(n) for n in CONTROLS]),
    min_size=1,
    max_size=255,
)


@pytest.mark.parametrize("text", ["", "x" * 256, f"{ID}\n", "a\0", "\x7f", "\x85", "\ud800"])
def test_a_text_with_controls_or_of_the_wrong_length_is_refused_as_session_id(text: str) -> None:
    with pytest.raises(ValidationError, match="session id"):
        parse_session_id(text)


@given(SESSION_IDS)
@example("user/42")
@example("..")
def test_any_other_text_is_a_session_id(text: str) -> None:
    assert parse_session_id(text) == text


@given(SESSION_IDS)
@example("../../etc/passwd")
@example(".")
@example("-" * 255)
def test_a_file_name_stays_in_its_directory(text: str) -> None:
    name = transcript_file_name(text)
    assert re.fullmatch(r"[a-z0-9_=-]{1,249}\.jsonl", name)


@given(SESSION_IDS, SESSION_IDS)
@example("Ada", "ada")
@example("a=41", "aA")
@example("é", "e\u0301")
@example("x" * 254, "x" * 255)
def test_file_names_of_different_ids_differ_without_regard_to_case(first: str, second: str) -> None:
    is_same = transcript_file_name(first).lower() == transcript_file_name(second).lower()
    assert is_same == (first == second)


def test_plain_ids_are_file_names_as_they_are() -> None:
    assert transcript_file_name(ID) == f"{ID}.jsonl"
    assert transcript_file_name("user_42-a") == "user_42-a.jsonl"
    assert transcript_file_name("User.42") == "=55ser=2e42.jsonl"


def test_a_truncated_preview_is_marked() -> None:
    assert truncate("hello", 5) == ("hello", False)
    assert truncate("hello!", 5) == ("hello…", True)
