"""`python -m bide.cli`, for where the `bide` script is not on the path."""

from __future__ import annotations

from bide.cli import main

main()
