"""The door: a checkpointer for LangGraph's `compile(checkpointer=…)`, on our store."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from bide.errors import CorruptDataError, RetentionError, ThreadDeletedError
from bide.interop.langgraph.packing import CodecSerializer, Packer
from bide.interop.langgraph.putting import Putting, draft_of, forget_late, put_writes, writes_of
from bide.interop.langgraph.reading import Pages, find, history_of, read_lines, tuple_of, wanted, with_last_good
from bide.interop.langgraph.rows import Address, Rows
from bide.interop.langgraph.upkeep import (
    check_strategy,
    copy_thread,
    delete_runs,
    delete_thread,
    keep_latest,
    thread_ids_of,
)
from bide.interop.langgraph.values import Remembered
from bide.store import Store

if TYPE_CHECKING:
    from langgraph.checkpoint.base import DeltaChannelHistory  # not in every release

T = TypeVar("T")


class BideSaver(BaseCheckpointSaver[Any]):
    """Keeps the threads of LangGraph's graphs in a store of Bide: `graph.compile(checkpointer=BideSaver(url))`.

    `BideSaver("sqlite:///app.db")`, `"postgresql://…"` and `":memory:"` open a store, with the options of
    `Store.open`; `BideSaver(store)` shares one that is open, and leaves it open. One object serves blocking and async
    graphs.

    Values go through Bide's codec: data only. Messages, plain data and what LangGraph itself stores need nothing;
    dataclasses, pydantic models and Enums are named with `types=[…]` or `@checkpointable`. `serde=` takes another
    serializer instead.
    """

    def __init__(
        self,
        where: Any,
        *,
        serde: SerializerProtocol | None = None,
        types: Iterable[type] = (),
        **options: Any,
    ) -> None:
        if options.get("retention") is not None:
            _refuse_retention()
        super().__init__(serde=serde if serde is not None else CodecSerializer(types))
        self._owns_store = not isinstance(where, Store)
        self.store = where if isinstance(where, Store) else Store.open(where, **options)
        self._remembered = Remembered()

    @classmethod
    def from_conn_string(cls, url: Any, **options: Any) -> Self:
        """Open a saver for a `with` or an `async with` block, at whose end it is closed."""
        return cls(url, **options)

    def setup(self) -> Done:
        """Do nothing: tables are made when a store is first opened. It may be awaited, too."""
        return Done()

    def close(self) -> None:
        """Close the store, if this object has opened it."""
        if self._owns_store:
            self.store.close()

    def __enter__(self) -> Self:
        """Use the saver in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    async def __aenter__(self) -> Self:
        """Use the saver in an `async with` block."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self._hop(self.close)

    def with_allowlist(self, extra_allowlist: Collection[tuple[str, ...]]) -> BaseCheckpointSaver[Any]:
        """Return this saver: our codec builds nothing but what is registered, so there is nothing to allow."""
        return self if isinstance(self.serde, CodecSerializer) else super().with_allowlist(extra_allowlist)

    def get_next_version(self, current: Any, channel: None) -> Any:
        """Count on. Threads that came from another saver have texts for versions, and keep them."""
        if isinstance(current, str):
            return f"{int(current.split('.')[0]) + 1:032}.{0:016}"
        return 1 if current is None else current + 1

    # ── Writing ────────────────────────────────────────────────────────────────────────────────────────────────────

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Write a checkpoint and the values that changed, in one transaction."""
        packer = self._packer
        draft = draft_of(config, checkpoint, metadata, new_versions, packer)

        def write(rows: Rows) -> Putting:
            putting = Putting(rows, draft, packer, self._remembered)
            putting.write()
            return putting

        try:
            self._write("saver_put", write).remember()
        except ThreadDeletedError:
            self._write("saver_refuse", lambda rows: forget_late(rows, draft.address))
            raise
        return draft.address.config()  # type: ignore[return-value]

    def put_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Write what a task has written, in one transaction."""
        packed = writes_of(config, writes, task_id, task_path, self._packer)
        self._write("saver_writes", lambda rows: put_writes(rows, packed))

    def delete_thread(self, thread_id: str) -> None:
        """Delete a thread. A run that is under way on it is refused from then on; a new one may begin."""
        self._write("saver_delete", lambda rows: delete_thread(rows, str(thread_id)))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints, writes and values that some runs made, and nobody else needs."""
        runs, packer = set(thread_ids_of(run_ids)), self._packer
        self._write("saver_delete_runs", lambda rows: delete_runs(rows, runs, packer))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread with all its checkpoints, values and writes into one that is new."""
        self._write("saver_copy", lambda rows: copy_thread(rows, str(source_thread_id), str(target_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Keep the newest checkpoint of each graph of some threads, or nothing of them. One transaction for each."""
        check_strategy(strategy)
        packer = self._packer
        for thread_id in thread_ids_of(thread_ids):
            if strategy == "delete":
                self.delete_thread(thread_id)
            else:
                self._write("saver_prune", partial(keep_latest, thread_id=thread_id, packer=packer))

    # ── Reading ────────────────────────────────────────────────────────────────────────────────────────────────────

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint, or the newest one, with the writes of the step that follows it."""
        address = Address.of(config)
        packer = self._packer
        try:
            found = self._read(lambda rows: find(rows, address, self._remembered))
            return None if found is None else tuple_of(found, packer)
        except CorruptDataError as problem:
            found_damage = problem
        raise self._read(lambda rows: with_last_good(found_damage, rows, address, packer)) from found_damage

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """List checkpoints, newest first. They are read as they are asked for, a page at a time."""
        pages = self._pages(config, filter, before, limit)
        while not pages.is_over:
            yield from self._next_page(pages)

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Read what the values of delta channels are made of: the nearest stored value, and the writes since."""
        address, packer = Address.of(config), self._packer
        lines = self._read(lambda rows: read_lines(rows, address, channels, self._remembered))
        return {channel: history_of(found, channel, packer) for channel, found in lines.items()}

    # ── The same for async graphs ──────────────────────────────────────────────────────────────────────────────────

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Do what `put` does."""
        return await self._hop(self.put, config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Do what `put_writes` does."""
        await self._hop(self.put_writes, config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """Do what `delete_thread` does."""
        await self._hop(self.delete_thread, thread_id)

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Do what `delete_for_runs` does."""
        await self._hop(self.delete_for_runs, run_ids)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Do what `copy_thread` does."""
        await self._hop(self.copy_thread, source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Do what `prune` does."""
        await self._hop(lambda: self.prune(thread_ids, strategy=strategy))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Do what `get_tuple` does."""
        return await self._hop(self.get_tuple, config)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Do what `list` does."""
        pages = self._pages(config, filter, before, limit)
        while not pages.is_over:
            for found in await self._hop(self._next_page, pages):
                yield found

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Do what `get_delta_channel_history` does."""
        return await self._hop(lambda: self.get_delta_channel_history(config=config, channels=channels))

    # ── How ────────────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def _packer(self) -> Packer:
        return Packer(self.serde)

    def _pages(self, config: Any, filter: Any, before: Any, limit: int | None) -> Pages:
        return Pages(wanted(config, filter, before), limit, self._packer, self._remembered)

    def _next_page(self, pages: Pages) -> Sequence[CheckpointTuple]:
        packer = self._packer
        return [tuple_of(found, packer) for found in self._read(pages.read)]

    def _read(self, work: Callable[[Rows], T]) -> T:
        return self.store.database.read(lambda tx: work(Rows(tx, self.store.bodies)))

    def _write(self, name: str, work: Callable[[Rows], T]) -> T:
        now = self.store.clock.now()
        return self.store.database.write(name, lambda tx: work(Rows(tx, self.store.bodies, now)))

    async def _hop(self, work: Callable[..., T], *args: Any) -> T:
        """Call something that may wait for a disk: once, in a thread. What is in memory is called where we are."""
        return await asyncio.to_thread(work, *args) if self.store.blocking else work(*args)


def _refuse_retention() -> NoReturn:
    raise RetentionError(
        "BideSaver takes no retention=: a policy is for threads of Bide's own graphs, and leaves LangGraph's alone. "
        "Call saver.prune([thread_id, …]) to keep only the newest checkpoint of a thread, or "
        "saver.delete_thread(thread_id). If Bide's own threads in the same database are meant, give a store that has "
        "the policy: BideSaver(Store.open(url, retention=Retention(…)))."
    )


class Done:
    """Nothing more to do, for whoever awaits it and whoever does not."""

    def __await__(self) -> Generator[None, None, None]:
        """Be over at once."""
        yield from ()
