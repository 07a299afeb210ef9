"""A worker's commit is on its way for so long that another worker takes its run over: then it writes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from bide import Command, Store
from bide.errors import LeaseLostError
from tests.faults.aimed import PLAIN, AimedDatabase
from tests.faults.operations import INPUT, JOB, ask, count_up, graph_of, greet, part, picture
from tests.faults.proxy import ChaosProxy, Fault, once
from tests.faults.shop import prepare

pytestmark = [pytest.mark.slow, pytest.mark.timeout(120)]

SECONDS = 60
HELD = {
    "plain step": (PLAIN + "commit", [greet, part, ask]),
    "line of the journal": ("journal", [count_up, ask]),
    "step with a journal": ("commit", [count_up, part, ask]),
    "pause": ("commit", [ask]),
}


@pytest.mark.parametrize("what", HELD)
def test_commit_that_was_held_up_past_a_takeover_writes_nothing(what, postgres_url, schema):
    target, nodes = HELD[what]
    with Store.open(postgres_url, schema=schema) as heir, ChaosProxy(postgres_url) as proxy:
        prepare(heir, schema)
        with (
            Store(AimedDatabase(proxy, schema, target, once(Fault.HELD))) as zombie,
            ThreadPoolExecutor(1) as pool,
        ):
            late = pool.submit(graph_of(zombie, *nodes).invoke, INPUT, JOB)
            assert proxy.caught.wait(SECONDS)
            with psycopg.connect(postgres_url) as database:
                # Seen from another machine, a worker that does not renew its lease is gone.
                database.execute(f"UPDATE {schema}.workers SET host = 'another machine', lease_until = 0")
            paused = graph_of(heir, *nodes).invoke(None, JOB)
            before = picture(postgres_url, schema)
            proxy.release()
            error = late.exception(SECONDS)

        after = picture(postgres_url, schema)
        done = graph_of(heir, *nodes).invoke(Command(resume="yes"), JOB)

    assert isinstance(error, LeaseLostError)
    assert paused.is_interrupted
    assert after == before
    assert done["told"][-1] == "yes"
    assert len(done["told"]) == len(nodes)
