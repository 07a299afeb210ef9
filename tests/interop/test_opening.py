"""Where a saver keeps its threads, and what it says when it cannot."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bide import Encryption, Retention, Store
from bide.errors import (
    BideError,
    CorruptDataError,
    RetentionError,
    StoreError,
    StoreUnavailableError,
    ValueTooLargeError,
)
from bide.interop.langgraph import BideSaver
from tests.interop.graphs import CONFIG, RESUME, asking, chat, say

WITHOUT_LANGGRAPH = """
import sys
sys.modules["langgraph"] = None
import bide
try:
    from bide.interop.langgraph import BideSaver
except ImportError as problem:
    print(problem)
"""


def test_without_langgraph_the_error_names_the_extra() -> None:
    told = subprocess.run([sys.executable, "-c", WITHOUT_LANGGRAPH], capture_output=True, text=True, check=True).stdout

    assert 'pip install "bide[langgraph]"' in told


def test_a_path_is_no_url_and_memory_is_no_fallback() -> None:
    with pytest.raises(StoreUnavailableError, match=r"sqlite:///checkpoints\.db"):
        BideSaver("checkpoints.db")


def test_a_store_that_was_given_stays_open(tmp_path: Path) -> None:
    with Store.open(f"sqlite:///{tmp_path / 'app.db'}") as store:
        with BideSaver(store) as saver:
            asking().compile(checkpointer=saver).invoke({"log": []}, CONFIG)

        found = asking().compile(checkpointer=BideSaver(store)).invoke(RESUME, CONFIG)

    assert found["answer"] == "yes"


def test_a_store_that_was_opened_is_closed_with_the_saver(tmp_path: Path) -> None:
    with BideSaver(f"sqlite:///{tmp_path / 'app.db'}") as saver:
        assert saver.get_tuple(CONFIG) is None

    with pytest.raises(StoreError, match="closed"):
        saver.get_tuple(CONFIG)


def test_an_encrypted_store_shows_nothing_and_reads_nothing_without_its_key(lasting_url: str, tmp_path: Path) -> None:
    encryption = Encryption({"a": Encryption.generate_key()})
    secret = "the tea is in the blue tin"
    with BideSaver(lasting_url, encryption=encryption) as saver:
        graph = chat().compile(checkpointer=saver)
        graph.invoke(say(secret * 5000), CONFIG)
        again = graph.get_state(CONFIG).values["messages"][0].content

    with BideSaver(lasting_url) as saver, pytest.raises(CorruptDataError, match="encrypted"):
        saver.get_tuple(CONFIG)
    assert again == secret * 5000
    assert not any(secret.encode() in file.read_bytes() for file in tmp_path.iterdir())


def test_a_value_beyond_the_limit_is_refused_as_a_whole() -> None:
    with BideSaver(":memory:", largest_value=100_000) as saver:
        graph = chat().compile(checkpointer=saver)

        with pytest.raises(ValueTooLargeError, match="largest_value"):
            graph.invoke(say("x" * 200_000), CONFIG, durability="sync")

        assert saver.get_tuple(CONFIG) is None
        assert issubclass(ValueTooLargeError, BideError)


def test_a_policy_that_would_do_nothing_for_langgraph_is_refused(tmp_path: Path) -> None:
    policy = Retention(keep_last=5)

    with pytest.raises(RetentionError, match=r"saver\.prune"):
        BideSaver(f"sqlite:///{tmp_path / 'app.db'}", retention=policy)

    assert list(tmp_path.iterdir()) == []
    with Store.open(f"sqlite:///{tmp_path / 'app.db'}", retention=policy) as store:
        assert BideSaver(store).get_tuple(CONFIG) is None
