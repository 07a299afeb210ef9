"""The engine: a pure step loop that says what must happen, and two drivers that make it happen.

Read `flow` first (the story of a run), then `plan` and `apply` (what it decides), then `drive` (who does it).
"""
