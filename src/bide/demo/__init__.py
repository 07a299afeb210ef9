"""The guided demo: three agents that wait for the world, a worker that can be killed, and the inbox in the terminal.

    python -m bide.demo [--yes] [--keep] [--db PATH]

Read it in this order: `agents` are the three agents, as a user would write them; `outside` is the world they act on;
`worker` is the process that drives them, and that is killed; `inbox` is what is shown of those who wait; `desk` is what
a person can do; `tour` lets a person do it, `story` does it all by itself; `audit` checks every claim of the story.
"""
