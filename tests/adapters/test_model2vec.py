"""Meanings from a model on this machine, without a network."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path as File

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import tiny_embedding_model as thesaurus

import carrel
from carrel.adapters.model2vec import _VECTOR_OVERHEAD_BYTES, Model2VecIndex
from carrel.ports import IndexedTexts
from carrel.settings import Settings, SettingsError, load
from carrel.wiring.ports import open_ports

pytestmark = pytest.mark.anyio

SAID = {"a": "tea", "b": "my car", "c": "unknown words", "d": "an automobile", "e": "car"}
TEXT = st.lists(st.sampled_from([*thesaurus.MEANINGS, "other"])).map(" ".join)


def texts(said: Mapping[str, str] = SAID, owner: str = "ada", revision: int = 1) -> IndexedTexts:
    async def pages() -> AsyncIterator[list[tuple[str, str]]]:
        for one in said.items():
            yield [one]

    return IndexedTexts(owner, revision, pages())


async def ids(
    meanings: Model2VecIndex, query: str, among: IndexedTexts, limit: int = 9
) -> list[str]:
    [found] = await meanings.nearest([query], among, limit=limit)
    return [id for id, _ in found]


@given(st.lists(TEXT))
def test_vectors_have_one_length_and_norm_1_and_are_the_same_in_any_company(
    given: list[str],
) -> None:
    vectors = Model2VecIndex(thesaurus.model()).vectors(given)
    assert vectors.shape == (len(given), 4)
    for text, vector in zip(given, vectors, strict=True):
        known = any(word in thesaurus.MEANINGS for word in text.split())
        assert np.linalg.norm(vector) == pytest.approx(1.0 if known else 0.0)
        alone = Model2VecIndex(thesaurus.model()).vectors([text])
        assert np.array_equal(alone[0], vector)


async def test_the_nearest_come_first_and_what_is_not_known_is_near_nothing() -> None:
    meanings = Model2VecIndex(thesaurus.model())
    cars, drinks, nothing = await meanings.nearest(["Car", "beverage", "unknown"], texts(), limit=3)
    assert [id for id, _ in cars] == ["e", "b", "d"]
    assert cars[0][1] == cars[1][1] == pytest.approx(1.0)
    assert [id for id, _ in drinks] == ["a"]
    assert nothing == ()
    assert await ids(meanings, "car", texts(), limit=1) == ["e"]
    assert await ids(meanings, "car", texts({}, "nobody")) == []
    assert await meanings.nearest([], texts(), limit=3) == ()


async def test_of_two_as_near_but_for_the_last_bits_the_greater_id_comes_first() -> None:
    places = np.random.default_rng(1).normal(size=(10, 64)).tolist()
    words = [f"word{n}" for n in range(10)]
    meanings = Model2VecIndex(thesaurus.model(dict(zip(words, places, strict=True))))
    for word in words:
        said = {"a": " ".join(words), "b": " ".join(reversed(words))}
        turned = {"a": said["b"], "b": said["a"]}
        found = [await ids(meanings, word, texts(one, str(one))) for one in (said, turned)]
        assert found in ([["b", "a"]] * 2, [[], []])


async def test_texts_are_read_again_only_at_a_later_revision() -> None:
    meanings = Model2VecIndex(thesaurus.model())
    assert await ids(meanings, "tea", texts({"a": "tea"}, revision=2)) == ["a"]
    for revision, found in ((2, ["a"]), (1, ["a"]), (3, ["z"]), (2, ["z"])):
        assert await ids(meanings, "tea", texts({"z": "tea"}, revision=revision)) == found
    assert await ids(meanings, "tea", texts({"y": "tea"}, "bob", 1)) == ["y"]


async def test_who_fails_to_read_leaves_nothing_behind() -> None:
    async def broken() -> AsyncIterator[list[tuple[str, str]]]:
        yield [("a", "tea")]
        raise ConnectionError

    meanings = Model2VecIndex(thesaurus.model())
    with pytest.raises(ConnectionError):
        await ids(meanings, "tea", IndexedTexts("ada", 1, broken()))
    assert await ids(meanings, "tea", texts({"z": "tea"})) == ["z"]


async def test_what_is_kept_is_bounded_and_answers_stay_the_same() -> None:
    room = 3000
    meanings = Model2VecIndex(thesaurus.model(), room)
    for n in range(9):
        many = {f"{one:04}": f"car {n} {one}" for one in range(n * 20)}
        assert len(await ids(meanings, "car", texts(many, f"owner {n}"), 999)) == n * 20
        assert (
            meanings._matrices.weight
            == sum(one.size for one, _ in meanings._matrices._entries.values())
            <= room
        )
        assert len(meanings._vectors_by_text) * (4 * 4 + _VECTOR_OVERHEAD_BYTES) <= room
    for n in range(9):
        assert await ids(meanings, "car", texts({}, f"idle {n}")) == []
    assert len(meanings._matrices) == 2


async def test_many_may_ask_at_once() -> None:
    meanings = Model2VecIndex(thesaurus.model())
    asks = [ids(meanings, "car", texts(owner=f"owner {n % 3}")) for n in range(24)]
    assert await asyncio.gather(*asks) == [["e", "b", "d"]] * 24


async def test_a_setting_says_where_the_model_is(tmp_path: File) -> None:
    model = thesaurus.saved(tmp_path / "model")
    for chosen, found in (("", []), (str(model), ["Ada parks her car"])):
        async with carrel.open(tmp_path / f"data{bool(chosen)}", semantic_model=chosen) as desk:
            await desk.agents.create("ada")
            ada = desk.agent("ada")
            await ada.memories.remember("Ada parks her car")
            hits = await ada.memories.recall("automobile")
            assert [one.content for one in hits] == found


async def refusal(directory: File, model: File | str) -> str:
    with pytest.raises(SettingsError) as refused:
        async with open_ports(_settings(directory, str(model))):
            pass
    return str(refused.value)


async def test_what_is_no_model_is_said_at_the_start(tmp_path: File) -> None:
    for absent in (tmp_path / "nothing", "minishlab/potion-base-8M"):
        said = await refusal(tmp_path, absent)
        assert said == f"CARREL_SEMANTIC_MODEL: no such directory: {absent}"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"{empty} is not a model2vec model" in await refusal(tmp_path, empty)
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        model = thesaurus.saved(tmp_path / name)
        (model / name).write_text("{")
        assert f"{model} is not a model2vec model" in await refusal(tmp_path, model)


async def test_a_model_of_what_are_no_numbers_is_damaged(tmp_path: File) -> None:
    model = tmp_path / "model"
    thesaurus.model({"car": (float("nan"), 1.0)}).save_pretrained(model)
    assert await refusal(tmp_path, model) == (
        f"CARREL_SEMANTIC_MODEL: the model in {model} is damaged"
    )


async def test_without_the_extra_a_model_is_refused_and_everything_else_works(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = thesaurus.saved(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "model2vec", None)
    monkeypatch.delitem(sys.modules, "carrel.adapters.model2vec")
    said = await refusal(tmp_path, model)
    assert said == "CARREL_SEMANTIC_MODEL needs the extra `semantic`"
    async with open_ports(_settings(tmp_path, "")) as opened:
        assert opened.ports.semantic_index is None


def _settings(directory: File, model: str) -> Settings:
    given = {"data": str(directory), "semantic_model": model}
    return load(given, environ={}, file=File("no such file"))
