"""What a shared session may see: the allow-list of paths."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from carrel.core.errors import Forbidden
from carrel.core.identifiers import Path
from carrel.core.runs import Audience
from carrel.core.sessions.shared_session_visibility import SHARED_PATHS, is_visible, require_visible

PRIVATE = ("USER.md", "MEMORY.md", "DREAMS.md", "MEMORY-INDEX.json", "notes", "memory")
segments = st.text(st.sampled_from("aN.é-M"), min_size=1, max_size=5).filter(
    lambda text: text not in {".", ".."}
)
paths = st.lists(segments, min_size=1, max_size=3).map("/".join)


@given(path=paths, is_workspace=st.booleans())
def test_a_session_with_one_person_may_see_every_path(path: str, is_workspace: bool) -> None:
    assert is_visible(Path(path), Audience.MAIN, is_shared_workspace=is_workspace)


@given(path=paths)
def test_of_an_agents_files_only_listed_ones_are_visible(path: str) -> None:
    assert is_visible(Path(path), Audience.SHARED) is (Path(path) in SHARED_PATHS)
    assert all(is_visible(listed, Audience.SHARED) for listed in SHARED_PATHS)


@given(
    name=st.sampled_from(PRIVATE),
    change_case=st.sampled_from([str.lower, str.upper, str.title, str.swapcase]),
    below=st.just("") | paths.map(lambda path: f"/{path}"),
)
def test_private_names_of_a_workspace_are_withheld_in_any_case_with_all_below(
    name: str, change_case: object, below: str
) -> None:
    assert callable(change_case)
    path = Path(change_case(name) + below)
    assert not is_visible(path, Audience.SHARED, is_shared_workspace=True)
    with pytest.raises(Forbidden, match="is not available in a shared session"):
        require_visible(path, Audience.SHARED, is_shared_workspace=True)


@given(directory=segments, name=st.sampled_from(PRIVATE))
def test_other_files_of_a_workspace_are_visible(directory: str, name: str) -> None:
    for path in ("report.csv", "TASKS.md", f"{directory}/{name}", f"{directory}.md"):
        assert is_visible(Path(path), Audience.SHARED, is_shared_workspace=True)
