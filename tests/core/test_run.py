"""Runs end once, and events are let through by what was asked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.core.forests import SCOPES

from carrel.core.errors import Taken
from carrel.core.identifiers import Scope
from carrel.core.runs import Mode, Run, Status, settled
from carrel.core.store.event import RUN_ENDED, TYPES, Event, Filter

statuses = st.sampled_from(Status)
events = st.builds(
    Event,
    *(st.just("1"), st.just("ev_1"), st.sampled_from(TYPES), st.sampled_from(["acme", "globex"])),
    *(st.just(0), st.just({}), st.none() | st.sampled_from(SCOPES)),
    st.none() | st.sampled_from(["run_1", "run_2"]),
)


def run(status: Status) -> Run:
    return Run("run_1", "acme", SCOPES[0], "noop", Mode.MAIN, status, "ada", 0)


@given(statuses, statuses)
def test_a_run_that_has_ended_stays_as_it_ended(was: Status, wanted: Status) -> None:
    if was is Status.RUNNING or was is wanted:
        assert settled(run(was), wanted) is wanted
        return
    with pytest.raises(Taken, match=was):
        settled(run(was), wanted)


def test_every_end_of_a_run_has_its_event() -> None:
    assert set(RUN_ENDED) == set(Status) - {Status.RUNNING}
    assert len(set(TYPES)) == len(TYPES)


@given(events)
def test_an_open_filter_lets_through_all_of_its_tenant_and_nothing_else(event: Event) -> None:
    assert Filter("acme").admits(event) == (event.tenant == "acme")


@given(
    events,
    st.frozensets(st.sampled_from(SCOPES)),
    st.none() | st.sampled_from(["run_1", "run_2"]),
    st.frozensets(st.sampled_from(TYPES)),
)
def test_each_field_of_a_filter_narrows_it(
    event: Event, scopes: frozenset[Scope], run: str | None, types: frozenset[str]
) -> None:
    whole = Filter("acme", scopes, run, types)
    parts = [Filter("acme", scopes), Filter("acme", run=run), Filter("acme", types=types)]

    assert whole.admits(event) == all(part.admits(event) for part in parts)
