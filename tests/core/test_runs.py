"""Runs end once, and event filters match on every field."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.strategies_trees import SCOPES

from carrel.core.errors import Conflict
from carrel.core.identifiers import Scope
from carrel.core.runs import Audience, Run, RunStatus, next_status
from carrel.core.store.event import EVENT_TYPES, RUN_ENDED_BY_STATUS, Event, EventFilter

statuses = st.sampled_from(RunStatus)
events = st.builds(
    Event,
    *(
        st.just("1"),
        st.just("ev_1"),
        st.sampled_from(EVENT_TYPES),
        st.sampled_from(["acme", "globex"]),
    ),
    *(st.just(0), st.just({}), st.none() | st.sampled_from(SCOPES)),
    st.none() | st.sampled_from(["run_1", "run_2"]),
)


def run(status: RunStatus) -> Run:
    return Run("run_1", "acme", SCOPES[0], "noop", Audience.MAIN, status, "ada", 0)


@given(statuses, statuses)
def test_an_ended_run_keeps_its_status_but_an_abandoned_one_may_end(
    current: RunStatus, requested: RunStatus
) -> None:
    ends_late = current is RunStatus.ABANDONED and requested is not RunStatus.RUNNING
    if current is RunStatus.RUNNING or current is requested or ends_late:
        assert next_status(run(current), requested) is requested
        return
    with pytest.raises(Conflict, match=current):
        next_status(run(current), requested)


def test_every_final_status_has_an_event_type() -> None:
    assert set(RUN_ENDED_BY_STATUS) == set(RunStatus) - {RunStatus.RUNNING}
    assert len(set(EVENT_TYPES)) == len(EVENT_TYPES)


@given(events)
def test_a_filter_by_tenant_matches_exactly_the_events_of_the_tenant(event: Event) -> None:
    assert EventFilter("acme").matches(event) == (event.tenant == "acme")


@given(
    events,
    st.frozensets(st.sampled_from(SCOPES)),
    st.none() | st.sampled_from(["run_1", "run_2"]),
    st.frozensets(st.sampled_from(EVENT_TYPES)),
)
def test_each_field_narrows_a_filter(
    event: Event, scopes: frozenset[Scope], run: str | None, types: frozenset[str]
) -> None:
    combined = EventFilter("acme", scopes, run, types)
    parts = [
        EventFilter("acme", scopes),
        EventFilter("acme", run=run),
        EventFilter("acme", types=types),
    ]

    assert combined.matches(event) == all(part.matches(event) for part in parts)
