"""A process that rings the doorbell of a store, once for each line that it reads.

python bell_ringer.py URL
"""

from __future__ import annotations

import sys

from bide import Store


def main(url: str) -> None:
    schema = None if url.startswith("sqlite:") else "bide"
    with Store.open(url, schema=schema) as store:
        print('"ready"', flush=True)
        for _ in sys.stdin:
            store.doorbell.ring()
            print('"rung"', flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
