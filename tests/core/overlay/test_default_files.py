"""Seeding: what the operator wrote is hers, what she left alone follows, and it settles at once."""

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

Held = Mapping[Path, Digest | None]

SOUL, USER, ROUTER = Path("SOUL.md"), Path("USER.md"), Path("ROUTER.md")
FIRST, SECOND, THIRD, OWN = (digest(text) for text in (b"one", b"two", b"three", b"own"))

paths = st.sampled_from([SOUL, USER, ROUTER, Path("memory/lessons.md")])
digests = st.sampled_from([FIRST, SECOND, THIRD, OWN])
helds = st.dictionaries(paths, st.none() | digests)
packages = st.builds(PackagedFiles, st.integers(1, 3), st.dictionaries(paths, digests))
memories = st.builds(SeedState, st.integers(0, 3), st.dictionaries(paths, st.none() | digests))


def is_newer(packaged: PackagedFiles, seeded: SeedState) -> bool:
    return packaged.version >= seeded.version


def applied(planned: DefaultsPlan, held: Held) -> Held:
    return {**held, **planned.writes}


def left_alone(path: Path, seeded: SeedState, held: Held) -> bool:
    """It is what we wrote, or nothing where we never came."""
    return held.get(path) == seeded.files.get(path) and (
        path not in seeded.files or held.get(path) is not None
    )


@given(packages, memories, helds)
def test_a_text_of_the_operators_is_never_overwritten_or_removed(
    packaged: PackagedFiles, seeded: SeedState, held: Held
) -> None:
    after = applied(plan_defaults(packaged, seeded, held), held)

    for path, text in held.items():
        if text is not None and text != seeded.files.get(path):
            assert after[path] == text


@given(packages, memories, helds)
def test_what_was_left_alone_ends_at_the_packaged_bytes(
    packaged: PackagedFiles, seeded: SeedState, held: Held
) -> None:
    after = applied(plan_defaults(packaged, seeded, held), held)

    for path in {*packaged.files, *seeded.files}:
        if is_newer(packaged, seeded) and left_alone(path, seeded, held):
            assert after.get(path) == packaged.files.get(path)


@given(packages, memories, helds)
def test_what_the_operator_deleted_stays_deleted(
    packaged: PackagedFiles, seeded: SeedState, held: Held
) -> None:
    planned = plan_defaults(packaged, seeded, held)

    for path in seeded.files:
        if held.get(path) is None:
            assert path not in planned.writes
            if is_newer(packaged, seeded):
                assert planned.offers.get(path) == packaged.files.get(path)


@given(packages, memories, helds)
def test_planning_again_gives_nothing_to_do_and_the_same_offers(
    packaged: PackagedFiles, seeded: SeedState, held: Held
) -> None:
    once = plan_defaults(packaged, seeded, held)
    again = plan_defaults(packaged, once.seed_state, applied(once, held))

    assert not again.writes
    assert again.offers == once.offers
    assert again.seed_state == once.seed_state


@given(packages, memories, helds)
def test_an_older_package_changes_nothing_and_forgets_nothing(
    packaged: PackagedFiles, seeded: SeedState, held: Held
) -> None:
    planned = plan_defaults(packaged, seeded, held)

    if not is_newer(packaged, seeded):
        assert planned == DefaultsPlan((), seeded)
        assert not planned.writes


@given(packages, memories, helds)
def test_every_path_that_is_or_was_packaged_has_one_outcome_in_order(
    packaged: PackagedFiles, seeded: SeedState, held: Held
) -> None:
    planned = plan_defaults(packaged, seeded, held)

    if is_newer(packaged, seeded):
        told = [outcome.path for outcome in planned.outcomes]
        assert told == sorted({*packaged.files, *seeded.files})
        assert planned.seed_state.version == packaged.version


@given(packages, memories, helds)
def test_whatever_is_not_taken_over_although_it_is_new_is_offered(
    packaged: PackagedFiles, seeded: SeedState, held: Held
) -> None:
    planned = plan_defaults(packaged, seeded, held)
    after = applied(planned, held)

    for path, ours in packaged.files.items():
        if is_newer(packaged, seeded) and ours != seeded.files.get(path):
            assert after.get(path) == ours or planned.offers[path] == ours


@given(packages)
def test_a_fresh_tenant_gets_everything_just_as_it_is_packaged(packaged: PackagedFiles) -> None:
    planned = plan_defaults(packaged, SeedState(), {})

    assert planned.writes == packaged.files
    assert planned.seed_state == SeedState(packaged.version, packaged.files)
    assert not planned.offers


def outcome(
    ours: Digest | None, seeded: Mapping[Path, Digest | None], held: Digest | None
) -> object:
    packaged = PackagedFiles(2, {SOUL: ours} if ours else {})
    (only,) = plan_defaults(packaged, SeedState(1, seeded), {SOUL: held}).outcomes
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


def test_an_offer_stands_until_it_is_taken_or_reviewed() -> None:
    held = {SOUL: OWN}
    offered = plan_defaults(PackagedFiles(2, {SOUL: SECOND}), SeedState(1, {SOUL: FIRST}), held)
    assert offered.offers == {SOUL: SECOND}

    taken = plan_defaults(PackagedFiles(2, {SOUL: SECOND}), offered.seed_state, {SOUL: SECOND})
    assert taken.outcomes == (CurrentFile(SOUL),)
    assert plan_defaults(
        PackagedFiles(3, {SOUL: THIRD}), taken.seed_state, {SOUL: SECOND}
    ).writes == {SOUL: THIRD}

    quiet = mark_reviewed(offered.seed_state, SOUL, SECOND)
    assert not plan_defaults(PackagedFiles(2, {SOUL: SECOND}), quiet, held).offers
    assert plan_defaults(PackagedFiles(3, {SOUL: THIRD}), quiet, held).outcomes == (
        KeptByOperator(SOUL, THIRD),
    )


def test_taking_back_an_update_is_an_edit_like_any_other() -> None:
    followed = plan_defaults(
        PackagedFiles(2, {SOUL: SECOND}), SeedState(1, {SOUL: FIRST}), {SOUL: FIRST}
    )

    later = plan_defaults(PackagedFiles(3, {SOUL: THIRD}), followed.seed_state, {SOUL: FIRST})

    assert later.outcomes == (KeptByOperator(SOUL, THIRD),)


def test_a_file_that_was_the_operators_before_ours_stays_deleted_once_she_deletes_it() -> None:
    first = plan_defaults(PackagedFiles(1, {SOUL: FIRST}), SeedState(), {SOUL: OWN})
    assert first.outcomes == (KeptByOperator(SOUL, FIRST),)

    assert plan_defaults(PackagedFiles(1, {SOUL: FIRST}), first.seed_state, {}).outcomes == (
        DeletedByOperator(SOUL, FIRST),
    )


def test_what_we_retired_ourselves_may_come_back_and_what_she_deleted_may_not() -> None:
    seeded = SeedState(1, {SOUL: FIRST, USER: FIRST, ROUTER: FIRST})
    retired = plan_defaults(PackagedFiles(2, {}), seeded, {SOUL: FIRST, USER: None, ROUTER: OWN})
    assert retired.writes == {SOUL: None}
    assert retired.seed_state == SeedState(2, {USER: FIRST})

    back = plan_defaults(
        PackagedFiles(3, {SOUL: SECOND, USER: SECOND}), retired.seed_state, {SOUL: None, USER: None}
    )

    assert back.outcomes == (UpdateFile(SOUL, SECOND), DeletedByOperator(USER, SECOND))
