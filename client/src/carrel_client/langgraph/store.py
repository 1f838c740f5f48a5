"""LangGraph's store over files: one JSON file for each item, with versions and conditions."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    ensure_embeddings,
    get_text_at_path,
    tokenize_path,
    validate_op_namespace,
)

from carrel_client.drivers import Steps, await_steps, run_steps, steps_of
from carrel_client.errors import NotFound, WorkspaceConflict
from carrel_client.file_changes import DeleteFile, PutFile
from carrel_client.file_models import File, FileRow
from carrel_client.files import Files
from carrel_client.langgraph.item_documents import (
    CONTENT_TYPE,
    ItemDocument,
    Vector,
    document_from_text,
    is_item_path,
    item_location,
    item_path,
    namespace_directory,
    now,
)
from carrel_client.langgraph.item_queries import (
    best_similarity,
    check_filter,
    fits_filter,
    has_prefix,
    has_suffix,
    literal_prefix,
)

DEFAULT_PREFIX: Final = "langgraph/store"
_MAX_CHANGES: Final = 1000
"""Changes that one commit takes."""
_MAX_ATTEMPTS: Final = 10
_MAX_KNOWN_PATHS: Final = 10_000
Puts = Mapping[str, PutOp]


class CarrelItem(SearchItem):
    """An item with the etag that ``compare_and_set`` takes."""

    __slots__ = ("etag",)

    def __init__(self, *, etag: str, **fields: Any) -> None:
        super().__init__(**fields)
        self.etag = etag


class CarrelStore(BaseStore):
    """A LangGraph ``BaseStore`` in the files of a workspace or an agent.

    ``files`` is ``client.workspace("ws_…")`` or another layer, of a Client or an AsyncClient; the
    methods that block need a Client. Every put is a version with its author, in the history of
    ``<prefix>/<namespace…>/<key>.json``. The puts of a batch are one commit, applied after its
    reads. With an ``index`` items are embedded and searched by meaning; without one, ``query`` is
    ignored. Times to live are not supported.
    """

    supports_ttl = False

    def __init__(
        self, files: Files[Any], *, prefix: str = DEFAULT_PREFIX, index: IndexConfig | None = None
    ) -> None:
        self._files = files
        self._driver = files._driver
        self._prefix = prefix.strip("/")
        self.index_config = index
        self.embeddings = ensure_embeddings(index["embed"]) if index else None
        fields = ((index or {}).get("fields") if index else None) or ["$"]
        self._fields: Sequence[str] = fields
        # When known items were created, so that a put keeps the time without reading first.
        self._created: OrderedDict[str, datetime] = OrderedDict()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        operations = _checked(ops)
        return run_steps(self._driver, self._run(operations, self._embed(operations)))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        operations = _checked(ops)
        vectors = await self._aembed(operations)
        return await await_steps(self._driver, self._run(operations, vectors))

    def compare_and_set(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        *,
        etag: str | None,
    ) -> str:
        """Replace an item that still has an etag; with None, create one that must not exist.

        Returns the new etag. Raises WorkspaceConflict, and nothing is changed.
        """
        op = PutOp(namespace, key, value)
        vectors = self._embed(_checked([op]))
        return run_steps(self._driver, self._compare_and_set(op, vectors, etag))

    async def acompare_and_set(
        self,
        namespace: tuple[str, ...],
        key: str,
        value: dict[str, Any],
        *,
        etag: str | None,
    ) -> str:
        """As ``compare_and_set``."""
        op = PutOp(namespace, key, value)
        vectors = await self._aembed(_checked([op]))
        return await await_steps(self._driver, self._compare_and_set(op, vectors, etag))

    def _embed(self, operations: Sequence[Op]) -> Mapping[str, Vector]:
        texts = self._texts(operations)
        if self.embeddings is None or not texts:
            return {}
        return dict(zip(texts, self.embeddings.embed_documents(texts), strict=True))

    async def _aembed(self, operations: Sequence[Op]) -> Mapping[str, Vector]:
        texts = self._texts(operations)
        if self.embeddings is None or not texts:
            return {}
        return dict(zip(texts, await self.embeddings.aembed_documents(texts), strict=True))

    def _texts(self, operations: Sequence[Op]) -> list[str]:
        """The distinct texts to embed: those of puts, and queries."""
        if self.embeddings is None:
            return []
        texts: dict[str, None] = {}
        for op in operations:
            if isinstance(op, PutOp):
                texts |= dict.fromkeys(self._texts_of(op))
            elif isinstance(op, SearchOp) and op.query:
                texts[op.query] = None
        return list(texts)

    def _texts_of(self, op: PutOp) -> list[str]:
        if op.value is None or op.index is False or self.embeddings is None:
            return []
        fields = self._fields if op.index is None else op.index
        paths = [field if field == "$" else tokenize_path(field) for field in fields]
        return [text for path in paths for text in get_text_at_path(op.value, path)]

    def _run(self, operations: Sequence[Op], vectors: Mapping[str, Vector]) -> Steps[list[Result]]:
        results: list[Result] = []
        items: dict[str, CarrelItem | None] = {}
        puts: dict[str, PutOp] = {}
        for op in operations:
            result: Result = None
            if isinstance(op, GetOp):
                path = item_path(self._prefix, op.namespace, op.key)
                if path not in items:
                    items[path] = yield from self._get(path)
                result = items[path]
            elif isinstance(op, SearchOp):
                result = yield from self._search(op, vectors)
            elif isinstance(op, ListNamespacesOp):
                result = yield from self._list_namespaces(op)
            else:
                puts[item_path(self._prefix, op.namespace, op.key)] = op
            results.append(result)
        paths = list(puts)
        for start in range(0, len(paths), _MAX_CHANGES):
            part = paths[start : start + _MAX_CHANGES]
            yield from self._put({path: puts[path] for path in part}, vectors)
        return results

    def _get(self, path: str) -> Steps[CarrelItem | None]:
        try:
            file: File = yield from steps_of(self._files.get, path)
        except NotFound:
            return None
        return self._item(file, self._document(file))

    def _document(self, file: File) -> ItemDocument:
        document = document_from_text(file.path, file.content)
        self._remember(file.path, document.created_at)
        return document

    def _item(
        self, file: FileRow, document: ItemDocument, score: float | None = None
    ) -> CarrelItem:
        namespace, key = item_location(self._prefix, file.path)
        return CarrelItem(
            etag=file.etag,
            namespace=namespace,
            key=key,
            value=document.value,
            created_at=document.created_at,
            updated_at=file.updated_at,
            score=score,
        )

    def _search(self, op: SearchOp, vectors: Mapping[str, Vector]) -> Steps[list[Any]]:
        directory = namespace_directory(self._prefix, op.namespace_prefix)
        rows = yield from steps_of(self._files.list, directory, content=True)
        entries: list[tuple[File, ItemDocument]] = []
        for row in rows:
            if is_item_path(row.path):
                file = (
                    row
                    if isinstance(row, File)
                    else (yield from steps_of(self._files.get, row.path))
                )
                document = self._document(file)
                if fits_filter(document.value, op.filter):
                    entries.append((file, document))
        entries.sort(key=lambda entry: entry[0].updated_at, reverse=True)
        query = vectors.get(op.query) if op.query else None
        items = [
            self._item(file, document, best_similarity(query, document.vectors) if query else None)
            for file, document in entries
        ]
        if query:
            items.sort(key=_rank)
        return items[op.offset : op.offset + op.limit]

    def _list_namespaces(self, op: ListNamespacesOp) -> Steps[list[tuple[str, ...]]]:
        conditions = op.match_conditions or ()
        prefixes = [item.path for item in conditions if item.match_type == "prefix"]
        literal = max(map(literal_prefix, prefixes), key=len, default=())
        directory = namespace_directory(self._prefix, literal)
        rows = yield from steps_of(self._files.list, directory)
        paths = [row.path for row in rows if is_item_path(row.path)]
        namespaces = {item_location(self._prefix, path)[0] for path in paths}
        fitting = {
            namespace[: op.max_depth]
            for namespace in namespaces
            if all(_fits_condition(namespace, condition) for condition in conditions)
        }
        return sorted(fitting)[op.offset : op.offset + op.limit]

    def _put(self, puts: Puts, vectors: Mapping[str, Vector]) -> Steps[None]:
        """Apply puts in one commit; items that exist keep the time of their creation."""
        pending, created_at = dict(puts), now()
        for attempt in range(_MAX_ATTEMPTS):
            if not pending:
                return
            changes = [self._change(path, pending[path], vectors, created_at) for path in pending]
            try:
                yield from self._send(changes)
            except (NotFound, WorkspaceConflict) as refusal:
                if attempt == _MAX_ATTEMPTS - 1:
                    raise
                failed = [str(change["path"]) for change in refusal.failed_changes]
                for path in failed or list(pending):
                    yield from self._resolve(path, pending)
            else:
                self._remember_all(pending, created_at)
                return

    def _send(self, changes: Sequence[PutFile | DeleteFile]) -> Steps[None]:
        """Apply changes in one commit; one alone is a write of its file, which costs less."""
        if len(changes) > 1:
            yield from steps_of(self._files.commit, changes)
            return
        [change] = changes
        if isinstance(change, DeleteFile):
            yield from steps_of(self._files.delete, change.path)
            return
        yield from steps_of(
            self._files.put,
            change.path,
            change.content,
            content_type=change.content_type,
            if_none_match=change.if_none_match,
        )

    def _change(
        self, path: str, op: PutOp, vectors: Mapping[str, Vector], created_at: datetime
    ) -> PutFile | DeleteFile:
        if op.value is None:
            return DeleteFile(path=path)
        earlier = self._created.get(path)
        return PutFile(
            path=path,
            content=self._text(op, earlier or created_at, vectors),
            content_type=CONTENT_TYPE,
            if_none_match="*" if earlier is None else None,
        )

    def _text(self, op: PutOp, created_at: datetime, vectors: Mapping[str, Vector]) -> str:
        embedded = tuple(vectors[text] for text in self._texts_of(op))
        return ItemDocument(dict(op.value or {}), created_at, embedded).to_text()

    def _remember_all(self, puts: Puts, created_at: datetime) -> None:
        for path, op in puts.items():
            if op.value is None:
                self._created.pop(path, None)
            else:
                self._remember(path, self._created.get(path, created_at))

    def _resolve(self, path: str, pending: dict[str, PutOp]) -> Steps[None]:
        """After a refused change: skip a delete of nothing, learn when an item was created."""
        if pending[path].value is None:
            del pending[path]
            return
        yield from self._get(path)

    def _compare_and_set(
        self, op: PutOp, vectors: Mapping[str, Vector], etag: str | None
    ) -> Steps[str]:
        path = item_path(self._prefix, op.namespace, op.key)
        if etag is not None and path not in self._created:
            yield from self._get(path)
        created_at = (self._created.get(path) if etag is not None else None) or now()
        file = yield from steps_of(
            self._files.put,
            path,
            self._text(op, created_at, vectors),
            content_type=CONTENT_TYPE,
            if_match=etag,
            if_none_match="*" if etag is None else None,
        )
        self._remember(path, created_at)
        return str(file.etag)

    def _remember(self, path: str, created_at: datetime) -> None:
        self._created[path] = created_at
        self._created.move_to_end(path)
        while len(self._created) > _MAX_KNOWN_PATHS:
            self._created.popitem(last=False)


def _checked(ops: Iterable[Op]) -> list[Op]:
    """Raises InvalidNamespaceError or ValueError before anything is sent."""
    operations = list(ops)
    for op in operations:
        validate_op_namespace(op)
        if isinstance(op, SearchOp):
            check_filter(op.filter)
    return operations


def _fits_condition(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    fits = has_prefix if condition.match_type == "prefix" else has_suffix
    return fits(namespace, condition.path)


def _rank(item: SearchItem) -> float:
    return -item.score if item.score is not None else 2.0
