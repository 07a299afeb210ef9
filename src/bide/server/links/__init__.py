"""Approval links: somebody without an account decides one thing, once. GET shows, only POST decides.

tokens    what an address holds, and whether it is one of ours      offers    what can be decided about a wait
making    links made, listed and revoked                            looking   what a link leads to, as it stands now
deciding  the decision itself                                       wording   what people are told about it
routes    for callers with a key                                    public    for whoever has a link
"""

from __future__ import annotations

from bide.server.links.making import MadeLink, make_link
from bide.server.links.public import router as public_router
from bide.server.links.routes import router
from bide.server.links.secrecy import keep_tokens_out_of_logs

__all__ = ["MadeLink", "keep_tokens_out_of_logs", "make_link", "public_router", "router"]
