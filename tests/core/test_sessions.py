"""Transcripts as lines of JSON: what is written is read again, whatever else a file holds."""

from __future__ import annotations

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import ValidationError
from carrel.core.runs import Audience
from carrel.core.sessions import (
    Session,
    SpeakerRole,
    Transcript,
    TranscriptEntry,
    TranscriptHeader,
    complete_lines_length,
    encode_entries,
    encode_entry,
    encode_header,
    new_session_id,
    parse_session_id,
    parse_transcript,
    truncate,
)

ID = "5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c"
AT = 1_777_024_800_123
SESSION = Session("ten_1", ID, "kate", Audience.MAIN, "telegram", AT)
texts = st.text(st.characters(codec="utf-8"), max_size=40)
names = st.text("abc:-_1", min_size=1, max_size=12)
moments = st.integers(0, 4_000_000_000_000)
utterances = st.builds(
    TranscriptEntry,
    sequence=st.just(0),
    at=moments,
    role=st.sampled_from(SpeakerRole),
    content=texts,
    message=st.none() | names,
    plugin=st.just("") | names,
    sender=st.none() | names,
)


def numbered(said: list[TranscriptEntry]) -> tuple[TranscriptEntry, ...]:
    return tuple(
        TranscriptEntry(n, s.at, s.role, s.content, s.message, s.plugin, s.sender)
        for n, s in enumerate(said, 1)
    )


def test_a_header_is_written_as_the_format_has_it() -> None:
    assert encode_header(SESSION, "kate") == (
        b'{"type":"session","version":1,"id":"5f0c8a52-2f5e-4d3c-9f10-0a8c6f9a1b2c",'
        b'"timestamp":"2026-04-24T10:00:00.123Z","agent_id":"kate","source_plugin":"telegram"}\n'
    )


def test_an_entry_is_written_as_the_format_has_it() -> None:
    said = TranscriptEntry(1, AT, SpeakerRole.USER, "hello", "m-1", "telegram", "user123")
    assert encode_entry(said) == (
        b'{"type":"entry","timestamp":"2026-04-24T10:00:00.123Z","role":"user","content":"hello",'
        b'"message_id":"m-1","source_plugin":"telegram","sender_id":"user123"}\n'
    )


def test_of_an_entry_its_channel_is_always_told_and_what_else_was_not_said_is_left_out() -> None:
    assert encode_entry(TranscriptEntry(2, AT, SpeakerRole.ASSISTANT, "hello Luis")) == (
        b'{"type":"entry","timestamp":"2026-04-24T10:00:00.123Z","role":"assistant",'
        b'"content":"hello Luis","source_plugin":""}\n'
    )


def test_an_empty_source_plugin_is_understood_as_none() -> None:
    told = b'{"type":"entry","timestamp":"2026-04-24T10:00:00Z","role":"user","content":"x"'
    with_one, without = (
        parse_transcript(told + b',"source_plugin":""}\n'),
        parse_transcript(told + b"}\n"),
    )
    assert with_one == without
    assert with_one.entries[0].plugin == ""


@given(st.lists(utterances, max_size=6), names, moments)
def test_what_is_written_is_read_again(said: list[TranscriptEntry], plugin: str, at: int) -> None:
    session = Session("ten_1", ID, "kate", Audience.SHARED, plugin, at)
    written = encode_header(session, "kate") + encode_entries(said)
    assert parse_transcript(written) == Transcript(
        TranscriptHeader(ID, at, "kate", plugin), numbered(said)
    )
    assert len(written.splitlines()) >= 1 + len(said)
    assert [json.loads(row)["type"] for row in written.split(b"\n")[:-1]] == [
        "session",
        *["entry"] * len(said),
    ]


@given(st.lists(utterances, min_size=1, max_size=5), st.data())
def test_a_torn_file_loses_only_its_last_line(
    said: list[TranscriptEntry], data: st.DataObject
) -> None:
    written = encode_header(SESSION, "kate") + encode_entries(said)
    last = len(encode_entry(said[-1]))
    torn = written[: len(written) - data.draw(st.integers(2, last - 1))]
    assert parse_transcript(torn).entries == numbered(said)[:-1]
    assert torn[: complete_lines_length(torn)] == encode_header(SESSION, "kate") + encode_entries(
        said[:-1]
    )


@pytest.mark.parametrize(
    "strange",
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
def test_a_line_that_cannot_be_read_costs_itself_and_no_other(strange: bytes) -> None:
    said = [TranscriptEntry(n, AT, SpeakerRole.TOOL, f"{n}") for n in (1, 2)]
    found = parse_transcript(
        encode_header(SESSION, "kate")
        + encode_entry(said[0])
        + strange
        + b"\n"
        + encode_entry(said[1])
    )
    assert found.entries == tuple(said)
    assert found.skipped == bool(strange.strip())


def test_what_an_entry_has_beside_is_ignored_and_a_second_header_is_no_entry() -> None:
    told = b'{"type":"entry","timestamp":"2026-04-24T12:00:00+02:00","role":"user","content":"x",'
    found = parse_transcript(encode_header(SESSION, "kate") * 2 + told + b'"mood":"fine"}\n')
    assert found.header == TranscriptHeader(ID, AT, "kate", "telegram")
    assert [said.at for said in found.entries] == [1_777_024_800_000]
    assert found.skipped == 1


@given(st.uuids())
def test_any_usual_spelling_of_an_id_is_the_same_id(id: UUID) -> None:
    spellings = [str(id), str(id).upper(), id.hex, f"{{{id}}}", id.urn]
    assert {parse_session_id(spelling) for spelling in spellings} == {str(id)}


@given(st.text())
def test_a_drawn_id_is_a_random_uuid(chance: str) -> None:
    drawn = UUID(new_session_id(chance))
    assert (str(drawn), drawn.version) == (new_session_id(chance), 4)
    assert parse_session_id(str(drawn)) == str(drawn)


@pytest.mark.parametrize("text", ["", "x", "../x", ID + "/", ID[:-1], "-".join(ID), f"{ID}\n"])
def test_what_is_no_uuid_is_no_id_of_a_session(text: str) -> None:
    with pytest.raises(ValidationError, match="UUID"):
        parse_session_id(text)


def test_a_preview_says_where_it_was_cut() -> None:
    assert truncate("hello", 5) == ("hello", False)
    assert truncate("hello!", 5) == ("hello…", True)
