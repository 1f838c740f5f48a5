"""Seeding the defaults: operators' edits stay, unedited files follow the package."""

from __future__ import annotations

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from carrel.core.identifiers import Digest, Path, digest
from carrel.core.overlay.default_files import (
    CurrentFile,
    DefaultsPlan,
    DeletedByOperator,
    KeptByOperator,
    PackagedFiles,
    RetiredFile,
    SeedState,
    UpdateFile,
    mark_reviewed,
    plan_defaults,
)

Current = Mapping[Path, Digest | None]

SOUL, USER, ROUTER = Path("SOUL.md"), Path("USER.md"), Path("ROUTER.md")
FIRST, SECOND, THIRD, OWN = (digest(text) for text in (b"one", b"two", b"three", b"own"))

paths = st.sampled_from([SOUL, USER, ROUTER, Path("memory/lessons.md")])
digests = st.sampled_from([FIRST, SECOND, THIRD, OWN])
currents = st.dictionaries(paths, st.none() | digests)
packages = st.builds(PackagedFiles, st.integers(1, 3), st.dictionaries(paths, digests))
seed_states = st.builds(SeedState, st.integers(0, 3), st.dictionaries(paths, st.none() | digests))


def is_newer(packaged: PackagedFiles, seeded: SeedState) -> bool:
    return packaged.version >= seeded.version


def apply_plan(planned: DefaultsPlan, current: Current) -> Current:
    return {**current, **planned.writes}


def is_unedited(path: Path, seeded: SeedState, current: Current) -> bool:
    """Whether it is the seeded content, or absent and never seeded."""
    return current.get(path) == seeded.files.get(path) and (
        path not in seeded.files or current.get(path) is not None
    )


@given(packages, seed_states, currents)
def test_an_operators_text_is_never_overwritten_or_removed(
    packaged: PackagedFiles, seeded: SeedState, current: Current
) -> None:
    after = apply_plan(plan_defaults(packaged, seeded, current), current)

    for path, text in current.items():
        if text is not None and text != seeded.files.get(path):
            assert after[path] == text


@given(packages, seed_states, currents)
def test_an_unedited_file_gets_the_packaged_content(
    packaged: PackagedFiles, seeded: SeedState, current: Current
) -> None:
    after = apply_plan(plan_defaults(packaged, seeded, current), current)

    for path in {*packaged.files, *seeded.files}:
        if is_newer(packaged, seeded) and is_unedited(path, seeded, current):
            assert after.get(path) == packaged.files.get(path)


@given(packages, seed_states, currents)
def test_a_file_deleted_by_the_operator_stays_deleted(
    packaged: PackagedFiles, seeded: SeedState, current: Current
) -> None:
    planned = plan_defaults(packaged, seeded, current)

    for path in seeded.files:
        if current.get(path) is None:
            assert path not in planned.writes
            if is_newer(packaged, seeded):
                assert planned.offers.get(path) == packaged.files.get(path)


@given(packages, seed_states, currents)
def test_planning_again_writes_nothing_and_gives_the_same_offers(
    packaged: PackagedFiles, seeded: SeedState, current: Current
) -> None:
    once = plan_defaults(packaged, seeded, current)
    again = plan_defaults(packaged, once.seed_state, apply_plan(once, current))

    assert not again.writes
    assert again.offers == once.offers
    assert again.seed_state == once.seed_state


@given(packages, seed_states, currents)
def test_an_older_package_changes_nothing(
    packaged: PackagedFiles, seeded: SeedState, current: Current
) -> None:
    planned = plan_defaults(packaged, seeded, current)

    if not is_newer(packaged, seeded):
        assert planned == DefaultsPlan((), seeded)
        assert not planned.writes


@given(packages, seed_states, currents)
def test_every_path_that_is_or_was_packaged_has_one_outcome_in_order(
    packaged: PackagedFiles, seeded: SeedState, current: Current
) -> None:
    planned = plan_defaults(packaged, seeded, current)

    if is_newer(packaged, seeded):
        listed = [outcome.path for outcome in planned.outcomes]
        assert listed == sorted({*packaged.files, *seeded.files})
        assert planned.seed_state.version == packaged.version


@given(packages, seed_states, currents)
def test_a_new_packaged_file_is_either_written_or_offered(
    packaged: PackagedFiles, seeded: SeedState, current: Current
) -> None:
    planned = plan_defaults(packaged, seeded, current)
    after = apply_plan(planned, current)

    for path, ours in packaged.files.items():
        if is_newer(packaged, seeded) and ours != seeded.files.get(path):
            assert after.get(path) == ours or planned.offers[path] == ours


@given(packages)
def test_a_fresh_tenant_gets_the_packaged_files_verbatim(packaged: PackagedFiles) -> None:
    planned = plan_defaults(packaged, SeedState(), {})

    assert planned.writes == packaged.files
    assert planned.seed_state == SeedState(packaged.version, packaged.files)
    assert not planned.offers


def outcome(
    ours: Digest | None, seeded: Mapping[Path, Digest | None], current: Digest | None
) -> object:
    packaged = PackagedFiles(2, {SOUL: ours} if ours else {})
    (only,) = plan_defaults(packaged, SeedState(1, seeded), {SOUL: current}).outcomes
    return only


def test_each_situation_has_its_outcome() -> None:
    assert outcome(SECOND, {SOUL: FIRST}, FIRST) == UpdateFile(SOUL, SECOND)
    assert outcome(SECOND, {}, None) == UpdateFile(SOUL, SECOND)
    assert outcome(SECOND, {SOUL: FIRST}, OWN) == KeptByOperator(SOUL, SECOND)
    assert outcome(FIRST, {SOUL: FIRST}, OWN) == KeptByOperator(SOUL, None)
    assert outcome(SECOND, {}, OWN) == KeptByOperator(SOUL, SECOND)
    assert outcome(FIRST, {SOUL: FIRST}, FIRST) == CurrentFile(SOUL)
    assert outcome(SECOND, {SOUL: FIRST}, SECOND) == CurrentFile(SOUL)
    assert outcome(SECOND, {SOUL: FIRST}, None) == DeletedByOperator(SOUL, SECOND)
    assert outcome(None, {SOUL: FIRST}, None) == DeletedByOperator(SOUL, None)
    assert outcome(None, {SOUL: FIRST}, FIRST) == RetiredFile(SOUL, removed=True)
    assert outcome(None, {SOUL: FIRST}, OWN) == RetiredFile(SOUL, removed=False)


def test_an_offer_stays_until_it_is_taken_or_reviewed() -> None:
    current = {SOUL: OWN}
    offered = plan_defaults(PackagedFiles(2, {SOUL: SECOND}), SeedState(1, {SOUL: FIRST}), current)
    assert offered.offers == {SOUL: SECOND}

    taken = plan_defaults(PackagedFiles(2, {SOUL: SECOND}), offered.seed_state, {SOUL: SECOND})
    assert taken.outcomes == (CurrentFile(SOUL),)
    assert plan_defaults(
        PackagedFiles(3, {SOUL: THIRD}), taken.seed_state, {SOUL: SECOND}
    ).writes == {SOUL: THIRD}

    reviewed = mark_reviewed(offered.seed_state, SOUL, SECOND)
    assert not plan_defaults(PackagedFiles(2, {SOUL: SECOND}), reviewed, current).offers
    assert plan_defaults(PackagedFiles(3, {SOUL: THIRD}), reviewed, current).outcomes == (
        KeptByOperator(SOUL, THIRD),
    )


def test_reverting_an_update_counts_as_an_edit() -> None:
    followed = plan_defaults(
        PackagedFiles(2, {SOUL: SECOND}), SeedState(1, {SOUL: FIRST}), {SOUL: FIRST}
    )

    later = plan_defaults(PackagedFiles(3, {SOUL: THIRD}), followed.seed_state, {SOUL: FIRST})

    assert later.outcomes == (KeptByOperator(SOUL, THIRD),)


def test_an_operators_file_older_than_the_package_stays_deleted_after_its_deletion() -> None:
    first = plan_defaults(PackagedFiles(1, {SOUL: FIRST}), SeedState(), {SOUL: OWN})
    assert first.outcomes == (KeptByOperator(SOUL, FIRST),)

    assert plan_defaults(PackagedFiles(1, {SOUL: FIRST}), first.seed_state, {}).outcomes == (
        DeletedByOperator(SOUL, FIRST),
    )


def test_a_retired_file_may_return_and_a_file_deleted_by_the_operator_may_not() -> None:
    seeded = SeedState(1, {SOUL: FIRST, USER: FIRST, ROUTER: FIRST})
    retired = plan_defaults(PackagedFiles(2, {}), seeded, {SOUL: FIRST, USER: None, ROUTER: OWN})
    assert retired.writes == {SOUL: None}
    assert retired.seed_state == SeedState(2, {USER: FIRST})

    back = plan_defaults(
        PackagedFiles(3, {SOUL: SECOND, USER: SECOND}), retired.seed_state, {SOUL: None, USER: None}
    )

    assert back.outcomes == (UpdateFile(SOUL, SECOND), DeletedByOperator(USER, SECOND))
