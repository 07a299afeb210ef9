"""The demo: a server with three agents that wait for the world, their inbox in the browser, and a process to kill.

    python -m bide.demo [--yes] [--keep] [--db PATH] [--port PORT]

Read it in this order: `agents` are the three agents, as a user would write them; `outside` is the world they act on;
`server` is the process that serves and drives them, and that is killed; `crew` starts it and kills it; `api` calls it,
`desk` is what a person does by that; `tour` shows a visitor around, `story` does it all by itself, and `audit` checks
every claim of the story.
"""
