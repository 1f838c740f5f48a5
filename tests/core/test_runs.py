"""Runs end once, and events are let through by what was asked for."""

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
def test_a_run_that_has_ended_stays_as_it_ended(was: RunStatus, wanted: RunStatus) -> None:
    if was is RunStatus.RUNNING or was is wanted:
        assert next_status(run(was), wanted) is wanted
        return
    with pytest.raises(Conflict, match=was):
        next_status(run(was), wanted)


def test_every_end_of_a_run_has_its_event() -> None:
    assert set(RUN_ENDED_BY_STATUS) == set(RunStatus) - {RunStatus.RUNNING}
    assert len(set(EVENT_TYPES)) == len(EVENT_TYPES)


@given(events)
def test_an_open_filter_lets_through_all_of_its_tenant_and_nothing_else(event: Event) -> None:
    assert EventFilter("acme").matches(event) == (event.tenant == "acme")


@given(
    events,
    st.frozensets(st.sampled_from(SCOPES)),
    st.none() | st.sampled_from(["run_1", "run_2"]),
    st.frozensets(st.sampled_from(EVENT_TYPES)),
)
def test_each_field_of_a_filter_narrows_it(
    event: Event, scopes: frozenset[Scope], run: str | None, types: frozenset[str]
) -> None:
    whole = EventFilter("acme", scopes, run, types)
    parts = [
        EventFilter("acme", scopes),
        EventFilter("acme", run=run),
        EventFilter("acme", types=types),
    ]

    assert whole.matches(event) == all(part.matches(event) for part in parts)
