"""ADK's session service over the sessions of an agent."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

from google.adk.errors.already_exists_error import AlreadyExistsError
from google.adk.errors.session_not_found_error import SessionNotFoundError
from google.adk.events import Event
from google.adk.sessions import BaseSessionService, Session, State
from google.adk.sessions.base_session_service import GetSessionConfig, ListSessionsResponse

from carrel_client.client import ApiClient
from carrel_client.drivers import Result, Steps, await_steps
from carrel_client.google_adk.session_records import (
    SessionRecords,
    SplitState,
    Values,
    event_entry,
    json_values,
    merged_state,
    session_entry,
    split_state,
    state_entry,
)
from carrel_client.requests import api_path, list_pages
from carrel_client.runtimes.key_paths import name_to_segment, segment_to_name
from carrel_client.runtimes.session_log import SessionLog, SessionLogs
from carrel_client.sessions import Entry, NewEntry


class CarrelSessions(BaseSessionService):
    """An ADK ``BaseSessionService`` in the sessions of one agent.

    Events are entries of the session's transcript, where people read and search them. The session
    of an app, a user and an id is ``<app>/<user>/<id>``; values that begin with ``app:`` and
    ``user:`` are in ``<app>`` and ``<app>/<user>``. Two writers never lose each other's events.
    """

    def __init__(self, client: ApiClient[Any], agent: str) -> None:
        self._driver, self._agent = client._driver, agent
        self._logs = SessionLogs(client._driver, agent)

    @staticmethod
    def carrel_session_id(app_name: str, user_id: str, session_id: str) -> str:
        """The id of the session in Carrel, such as for the run that answers in it."""
        return _session_id(app_name, user_id, session_id)

    async def create_session(
        self,
        *,
        app_name: str,
        user_id: str,
        state: dict[str, Any] | None = None,
        session_id: str | None = None,
    ) -> Session:
        id = (session_id or "").strip() or uuid4().hex
        return await self._run(self._create(app_name, user_id, id, json_values(state)))

    async def get_session(
        self,
        *,
        app_name: str,
        user_id: str,
        session_id: str,
        config: GetSessionConfig | None = None,
    ) -> Session | None:
        id = session_id.strip()
        session = await self._run(self._get(app_name, user_id, id))
        if session is not None and config is not None:
            session.events = _limited(session.events, config)
        return session

    async def list_sessions(
        self, *, app_name: str, user_id: str | None = None
    ) -> ListSessionsResponse:
        sessions = await self._run(self._list(app_name, user_id))
        sessions.sort(key=lambda session: (session.last_update_time, session.user_id, session.id))
        return ListSessionsResponse(sessions=sessions)

    async def delete_session(self, *, app_name: str, user_id: str, session_id: str) -> None:
        """Erase a session; the token must be an admin's."""
        await self._run(self._log(app_name, user_id, session_id.strip()).delete())

    async def get_user_state(self, *, app_name: str, user_id: str) -> dict[str, Any]:
        return await self._run(self._state(app_name, user_id))

    async def append_event(self, session: Session, event: Event) -> Event:
        """Append an event; one that was appended before is not repeated."""
        if event.partial:
            return event
        self._apply_temp_state(session, event)
        event = self._trim_temp_delta_state(event)
        if await self._run(self._append(session, event)):
            self._commit_event_to_session(session, event)
            session.last_update_time = event.timestamp
        return event

    def _create(self, app: str, user: str, id: str, values: Values) -> Steps[Session]:
        log, state = self._log(app, user, id), split_state(values)
        new = session_entry(state.session, time.time())

        def choose(entries: Sequence[Entry]) -> list[NewEntry]:
            if SessionRecords(entries).exists:
                raise AlreadyExistsError(f"session {id} already exists")
            return [new]

        choose((yield from log.read()) or ())
        yield from self._store_state(app, user, state)
        yield from log.append_chosen(choose)
        created = yield from self._get(app, user, id)
        if created is None:
            raise SessionNotFoundError(f"session {id} was deleted at once")
        return created

    def _get(
        self, app: str, user: str, id: str, *, with_events: bool = True
    ) -> Steps[Session | None]:
        ids = [_session_id(*names) for names in ((app, user, id), (app,), (app, user))]
        entries, of_app, of_user = yield from self._logs.read_all(ids)
        records = SessionRecords(entries or ())
        if not records.exists:
            return None
        session = records.session(app, user, id, with_events=with_events)
        for prefix, states in ((State.APP_PREFIX, of_app), (State.USER_PREFIX, of_user)):
            values = merged_state(states or ())
            session.state |= {prefix + key: value for key, value in values.items()}
        return session

    def _list(self, app: str, user: str | None) -> Steps[list[Session]]:
        rows = yield from list_pages(api_path("agents", self._agent, "sessions"))
        sessions = []
        for row in rows:
            names = tuple(map(segment_to_name, str(row["id"]).split("/")))
            if len(names) == 3 and names[0] == app and user in (None, names[1]):
                session = yield from self._get(*names, with_events=False)
                sessions += [session] if session else []
        return sessions

    def _append(self, session: Session, event: Event) -> Steps[bool]:
        log = self._log(session.app_name, session.user_id, session.id)
        new = event_entry(event)

        def choose(entries: Sequence[Entry]) -> list[NewEntry]:
            records = SessionRecords(entries)
            if not records.exists:
                raise SessionNotFoundError(f"session {session.id} does not exist")
            return [] if records.has_event(new) else [new]

        values = split_state(new.item["stateDelta"])
        if values.app or values.user:
            # Before the event, since a repeated call sets the same values again.
            if not choose((yield from log.read()) or ()):
                return False
            yield from self._store_state(session.app_name, session.user_id, values)
        return (yield from log.append_chosen(choose))

    def _store_state(self, app: str, user: str, state: SplitState) -> Steps[None]:
        if state.app:
            yield from self._log(app).append([state_entry(state.app)])
        if state.user:
            yield from self._log(app, user).append([state_entry(state.user)])

    def _state(self, *names: str) -> Steps[Values]:
        entries = yield from self._log(*names).read()
        return merged_state(entries or ())

    def _log(self, *names: str) -> SessionLog:
        return self._logs.log(_session_id(*names))

    async def _run(self, steps: Steps[Result]) -> Result:
        return await await_steps(self._driver, steps)


def _session_id(*names: str) -> str:
    return "/".join(map(name_to_segment, names))


def _limited(events: list[Event], config: GetSessionConfig) -> list[Event]:
    if config.num_recent_events is not None:
        events = events[-config.num_recent_events :] if config.num_recent_events else []
    if config.after_timestamp is not None:
        events = [event for event in events if event.timestamp >= config.after_timestamp]
    return events
