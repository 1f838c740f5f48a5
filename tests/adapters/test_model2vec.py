"""Embeddings by a local model, without a network."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path as File

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support import tiny_embedding_model

import carrel
from carrel.adapters.model2vec import _VECTOR_OVERHEAD_BYTES, Model2VecIndex
from carrel.ports import IndexedTexts
from carrel.settings import Settings, SettingsError, load
from carrel.wiring.ports import open_ports

pytestmark = pytest.mark.anyio

TEXTS = {"a": "tea", "b": "my car", "c": "unknown words", "d": "an automobile", "e": "car"}
TEXT = st.lists(st.sampled_from([*tiny_embedding_model.MEANINGS, "other"])).map(" ".join)


def texts(by_id: Mapping[str, str] = TEXTS, owner: str = "ada", revision: int = 1) -> IndexedTexts:
    async def pages() -> AsyncIterator[list[tuple[str, str]]]:
        for item in by_id.items():
            yield [item]

    return IndexedTexts(owner, revision, pages())


async def ids(index: Model2VecIndex, query: str, among: IndexedTexts, limit: int = 9) -> list[str]:
    [matches] = await index.nearest([query], among, limit=limit)
    return [id for id, _ in matches]


@given(st.lists(TEXT))
def test_vectors_have_norm_1_and_do_not_depend_on_the_other_texts(
    batch: list[str],
) -> None:
    vectors = Model2VecIndex(tiny_embedding_model.model()).vectors(batch)
    assert vectors.shape == (len(batch), 4)
    for text, vector in zip(batch, vectors, strict=True):
        is_known = any(word in tiny_embedding_model.MEANINGS for word in text.split())
        assert np.linalg.norm(vector) == pytest.approx(1.0 if is_known else 0.0)
        alone = Model2VecIndex(tiny_embedding_model.model()).vectors([text])
        assert np.array_equal(alone[0], vector)


async def test_nearest_texts_come_first_and_unknown_words_match_nothing() -> None:
    index = Model2VecIndex(tiny_embedding_model.model())
    cars, drinks, nothing = await index.nearest(["Car", "beverage", "unknown"], texts(), limit=3)
    assert [id for id, _ in cars] == ["e", "b", "d"]
    assert cars[0][1] == cars[1][1] == pytest.approx(1.0)
    assert [id for id, _ in drinks] == ["a"]
    assert nothing == ()
    assert await ids(index, "car", texts(), limit=1) == ["e"]
    assert await ids(index, "car", texts({}, "another")) == []
    assert await index.nearest([], texts(), limit=3) == ()


async def test_ties_are_ordered_by_descending_id() -> None:
    places = np.random.default_rng(1).normal(size=(10, 64)).tolist()
    words = [f"word{n}" for n in range(10)]
    index = Model2VecIndex(tiny_embedding_model.model(dict(zip(words, places, strict=True))))
    for word in words:
        by_id = {"a": " ".join(words), "b": " ".join(reversed(words))}
        turned = {"a": by_id["b"], "b": by_id["a"]}
        results = [
            await ids(index, word, texts(variant, str(variant))) for variant in (by_id, turned)
        ]
        assert results in ([["b", "a"]] * 2, [[], []])


async def test_texts_are_read_again_only_at_a_later_revision() -> None:
    index = Model2VecIndex(tiny_embedding_model.model())
    assert await ids(index, "tea", texts({"a": "tea"}, revision=2)) == ["a"]
    for revision, expected in ((2, ["a"]), (1, ["a"]), (3, ["z"]), (2, ["z"])):
        assert await ids(index, "tea", texts({"z": "tea"}, revision=revision)) == expected
    assert await ids(index, "tea", texts({"y": "tea"}, "bob", 1)) == ["y"]


async def test_failed_read_leaves_no_entry() -> None:
    async def broken() -> AsyncIterator[list[tuple[str, str]]]:
        yield [("a", "tea")]
        raise ConnectionError

    index = Model2VecIndex(tiny_embedding_model.model())
    with pytest.raises(ConnectionError):
        await ids(index, "tea", IndexedTexts("ada", 1, broken()))
    assert await ids(index, "tea", texts({"z": "tea"})) == ["z"]


async def test_cache_is_bounded_and_results_stay_the_same() -> None:
    max_bytes = 3000
    index = Model2VecIndex(tiny_embedding_model.model(), max_bytes)
    for n in range(9):
        many = {f"{number:04}": f"car {n} {number}" for number in range(n * 20)}
        assert len(await ids(index, "car", texts(many, f"owner {n}"), 999)) == n * 20
        assert (
            index._matrices.weight
            == sum(matrix.size for matrix in index._matrices._values.values())
            <= max_bytes
        )
        assert len(index._vectors_by_text) * (4 * 4 + _VECTOR_OVERHEAD_BYTES) <= max_bytes
    for n in range(9):
        assert await ids(index, "car", texts({}, f"idle {n}")) == []
    assert len(index._matrices) == 2


async def test_concurrent_queries_are_answered() -> None:
    index = Model2VecIndex(tiny_embedding_model.model())
    asks = [ids(index, "car", texts(owner=f"owner {n % 3}")) for n in range(24)]
    assert await asyncio.gather(*asks) == [["e", "b", "d"]] * 24


async def test_setting_names_the_model(tmp_path: File) -> None:
    model = tiny_embedding_model.save_model(tmp_path / "model")
    for setting, expected in (("", []), (str(model), ["Ada parks her car"])):
        async with carrel.open(tmp_path / f"data{bool(setting)}", semantic_model=setting) as client:
            await client.agents.create("ada")
            ada = client.agent("ada")
            await ada.memories.remember("Ada parks her car")
            hits = await ada.memories.recall("automobile")
            assert [hit.content for hit in hits] == expected


async def refusal(directory: File, model: File | str) -> str:
    with pytest.raises(SettingsError) as refused:
        async with open_ports(_settings(directory, str(model))):
            pass
    return str(refused.value)


async def test_invalid_model_is_refused_at_startup(tmp_path: File) -> None:
    for absent in (tmp_path / "nothing", "minishlab/potion-base-8M"):
        message = await refusal(tmp_path, absent)
        assert message == f"CARREL_SEMANTIC_MODEL: no such directory: {absent}"
    empty = tmp_path / "empty"
    empty.mkdir()
    assert f"{empty} is not a model2vec model" in await refusal(tmp_path, empty)
    for name in ("model.safetensors", "tokenizer.json", "config.json"):
        model = tiny_embedding_model.save_model(tmp_path / name)
        (model / name).write_text("{")
        assert f"{model} is not a model2vec model" in await refusal(tmp_path, model)


async def test_model_with_non_finite_numbers_is_damaged(tmp_path: File) -> None:
    model = tmp_path / "model"
    tiny_embedding_model.model({"car": (float("nan"), 1.0)}).save_pretrained(model)
    assert await refusal(tmp_path, model) == (
        f"CARREL_SEMANTIC_MODEL: the model in {model} is damaged"
    )


async def test_model_without_the_extra_is_refused_and_everything_else_works(
    tmp_path: File, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_embedding_model.save_model(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "model2vec", None)
    monkeypatch.delitem(sys.modules, "carrel.adapters.model2vec")
    message = await refusal(tmp_path, model)
    assert message == "CARREL_SEMANTIC_MODEL needs the extra `semantic`"
    async with open_ports(_settings(tmp_path, "")) as opened:
        assert opened.ports.semantic_index is None


def _settings(directory: File, model: str) -> Settings:
    values = {"data": str(directory), "semantic_model": model}
    return load(values, environ={}, file=File("no such file"))
