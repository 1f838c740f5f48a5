"""What ADK documents of a session service."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event, EventActions
from google.adk.sessions import BaseSessionService, Session
from google.adk.sessions.base_session_service import GetSessionConfig
from google.genai import types

OWNER = {"app_name": "app", "user_id": "luis"}
STATE = {"app:model": "small", "user:name": "Luis", "temp:step": 1, "mood": "good"}


def event(text: str = "Hello?", *, state: dict[str, Any] | None = None, **fields: Any) -> Event:
    content = types.Content(role="user", parts=[types.Part(text=text)])
    actions = EventActions(state_delta=state or {})
    return Event(author="user", content=content, actions=actions, **fields)


async def stored(sessions: BaseSessionService, session: Session, **config: Any) -> Session:
    loaded = await sessions.get_session(
        app_name=session.app_name,
        user_id=session.user_id,
        session_id=session.id,
        config=GetSessionConfig(**config) if config else None,
    )
    assert loaded is not None
    return loaded


def texts(session: Session) -> list[str]:
    return [
        str(event.content.parts[0].text)
        for event in session.events
        if event.content and event.content.parts
    ]


async def test_created_session_is_found(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER, session_id="  chat ")
    assert (session.id, session.app_name, session.user_id) == ("chat", "app", "luis")
    assert (session.state, session.events) == ({}, [])
    assert session.last_update_time > 0
    assert await stored(sessions, session) == session
    for other in ({"app_name": "other"}, {"user_id": "ana"}, {"session_id": "other"}):
        assert await sessions.get_session(**{**OWNER, "session_id": "chat", **other}) is None


async def test_session_gets_an_id_and_ids_are_unique(sessions: BaseSessionService) -> None:
    first, second = [await sessions.create_session(**OWNER) for _ in range(2)]
    assert first.id and second.id and first.id != second.id
    with pytest.raises(AlreadyExistsError):
        await sessions.create_session(**OWNER, session_id=first.id)
    await sessions.create_session(app_name="app", user_id="ana", session_id=first.id)


async def test_state_of_app_and_user_is_shared(sessions: BaseSessionService) -> None:
    created = await sessions.create_session(**OWNER, state=STATE)
    assert created.state == {"app:model": "small", "user:name": "Luis", "mood": "good"}
    same_user = await sessions.create_session(**OWNER)
    assert same_user.state == {"app:model": "small", "user:name": "Luis"}
    other_user = await sessions.create_session(app_name="app", user_id="ana")
    assert other_user.state == {"app:model": "small"}
    other_app = await sessions.create_session(app_name="other", user_id="luis")
    assert other_app.state == {}
    assert await sessions.get_user_state(**OWNER) == {"name": "Luis"}
    assert await sessions.get_user_state(app_name="app", user_id="ana") == {}


async def test_event_is_stored_and_changes_the_state(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER, state={"mood": "good", "left": 1})
    delta = {"app:model": "large", "user:name": "Ana", "temp:step": 2, "mood": None, "n": [1]}
    appended = await sessions.append_event(session, event(state=delta))
    assert appended.actions.state_delta == {key: delta[key] for key in delta if key != "temp:step"}
    assert session.state["temp:step"] == 2
    assert session.last_update_time == appended.timestamp
    loaded = await stored(sessions, session)
    assert loaded.events == session.events == [appended]
    assert loaded.state == {
        "app:model": "large",
        "user:name": "Ana",
        "mood": None,
        "left": 1,
        "n": [1],
    }
    assert loaded.last_update_time == appended.timestamp


async def test_every_field_of_an_event_comes_back(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER)
    call = types.FunctionCall(id="call_1", name="bash", args={"command": "ls", "n": 1.5})
    image = types.Blob(data=b"\0\xff", mime_type="image/png")
    full = Event(
        author="ada",
        invocation_id="e-1",
        branch="a.b",
        content=types.Content(
            role="model", parts=[types.Part(function_call=call), types.Part(inline_data=image)]
        ),
        actions=EventActions(
            artifact_delta={"a.pdf": 1},
            escalate=True,
            transfer_to_agent="b",
            skip_summarization=True,
        ),
        long_running_tool_ids={"call_1"},
        custom_metadata={"a": {"b": [1, None]}},
        turn_complete=True,
        error_code="SAFETY",
        error_message="no",
        usage_metadata=types.GenerateContentResponseUsageMetadata(total_token_count=7),
    )
    await sessions.append_event(session, full)
    await sessions.append_event(session, Event(author="ada"))
    assert (await stored(sessions, session)).events == session.events


async def test_partial_event_is_not_stored(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER)
    await sessions.append_event(session, event(partial=True))
    assert (await stored(sessions, session)).events == session.events == []


async def test_event_that_is_sent_again_is_stored_once(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER)
    sent = await sessions.append_event(session, event(state={"n": 1}))
    await sessions.append_event(session, sent.model_copy(deep=True))
    assert len((await stored(sessions, session)).events) == 1
    assert len(session.events) == 1


async def test_writers_with_old_copies_lose_nothing(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER)
    copies = [await stored(sessions, session) for _ in range(4)]
    appends = (
        sessions.append_event(copy, event(str(number), state={f"key{number}": number}))
        for number, copy in enumerate(copies)
    )
    await asyncio.gather(*appends)
    loaded = await stored(sessions, session)
    assert sorted(texts(loaded)) == ["0", "1", "2", "3"]
    assert loaded.state == {f"key{number}": number for number in range(4)}


async def test_append_to_a_missing_session_is_refused(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER)
    await sessions.delete_session(**OWNER, session_id=session.id)
    with pytest.raises(SessionNotFoundError):
        await sessions.append_event(session, event())


async def test_events_can_be_limited(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER)
    for number in range(5):
        await sessions.append_event(session, event(str(number), timestamp=100.0 + number))
    assert texts(await stored(sessions, session)) == ["0", "1", "2", "3", "4"]
    assert texts(await stored(sessions, session, num_recent_events=2)) == ["3", "4"]
    assert texts(await stored(sessions, session, num_recent_events=0)) == []
    assert texts(await stored(sessions, session, num_recent_events=9)) == ["0", "1", "2", "3", "4"]
    assert texts(await stored(sessions, session, after_timestamp=103.0)) == ["3", "4"]
    assert texts(await stored(sessions, session, after_timestamp=200.0)) == []
    both = await stored(sessions, session, num_recent_events=3, after_timestamp=104.0)
    assert texts(both) == ["4"]


async def test_limited_session_has_its_whole_state(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER)
    await sessions.append_event(session, event(state={"n": 1}))
    assert (await stored(sessions, session, num_recent_events=0)).state == {"n": 1}


async def test_sessions_are_listed_without_events(sessions: BaseSessionService) -> None:
    for user, id in (("luis", "a"), ("luis", "b/c"), ("ana", "a")):
        await sessions.create_session(
            app_name="app", user_id=user, session_id=id, state={"user:name": user, "id": id}
        )
    await sessions.create_session(app_name="other", user_id="luis", session_id="d")
    first = await sessions.get_session(**OWNER, session_id="a")
    assert first is not None
    await sessions.append_event(first, event())
    listed = (await sessions.list_sessions(**OWNER)).sessions
    assert [session.id for session in listed] == ["b/c", "a"], "last updated last"
    assert all(session.events == [] for session in listed)
    assert listed[0].state == {"user:name": "luis", "id": "b/c"}
    everyone = (await sessions.list_sessions(app_name="app")).sessions
    assert {(session.user_id, session.id) for session in everyone} == {
        ("luis", "a"),
        ("luis", "b/c"),
        ("ana", "a"),
    }
    assert (await sessions.list_sessions(app_name="none")).sessions == []


async def test_deleted_session_is_gone(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER, session_id="chat", state=STATE)
    await sessions.append_event(session, event())
    await sessions.delete_session(**OWNER, session_id="chat")
    await sessions.delete_session(**OWNER, session_id="chat")
    assert await sessions.get_session(**OWNER, session_id="chat") is None
    assert (await sessions.list_sessions(**OWNER)).sessions == []
    again = await sessions.create_session(**OWNER, session_id="chat")
    assert (again.events, again.state) == ([], {"app:model": "small", "user:name": "Luis"})


async def test_found_session_is_a_copy(sessions: BaseSessionService) -> None:
    session = await sessions.create_session(**OWNER, state={"list": [1]})
    loaded = await stored(sessions, session)
    loaded.state["list"].append(2)
    loaded.events.append(event())
    assert (await stored(sessions, session)).state == {"list": [1]}
    assert (await stored(sessions, session)).events == []


async def test_names_of_any_text(sessions: BaseSessionService) -> None:
    names = {"app_name": "my/app", "user_id": "luis@example.com", "session_id": "50% ä..."}
    await sessions.create_session(**names)
    loaded = await sessions.get_session(**names)
    assert loaded and (loaded.app_name, loaded.user_id, loaded.id) == tuple(names.values())
    [listed] = (await sessions.list_sessions(app_name="my/app")).sessions
    assert (listed.user_id, listed.id) == ("luis@example.com", "50% ä...")
