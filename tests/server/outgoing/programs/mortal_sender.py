"""A server's sender of webhooks that turns the feed of a store into messages and sends them, once.

    python mortal_sender.py DATABASE URL

With BIDE_FAILPOINT=outbox:sent it dies after it has sent one, and before it could note that.
"""

from __future__ import annotations

import sys

from bide import Bide
from bide.server.hooks.outbound import Outbound
from bide.server.settings import Settings, WebhookSettings


def main(database: str, url: str) -> None:
    settings = Settings(webhooks=(WebhookSettings(url, events=("run.finished",)),), allow_private_targets=True)
    with Bide(database) as app:
        outbound = Outbound(app, settings)
        outbound.begin()
        outbound.collect()
        outbound.send_due()


if __name__ == "__main__":
    main(*sys.argv[1:])
