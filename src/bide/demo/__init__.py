"""The guided demo: an order that waits for a person, and two workers that are killed on the way.

    python -m bide.demo [--yes] [--keep] [--db PATH]

Read it in this order: `orders` is the graph, as a user would write it; `shop` is the world outside; `worker` is the
process that is killed; `story` tells what happens; `audit` checks every claim of the story.
"""
