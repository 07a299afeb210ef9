"""Doors for those who keep other tools and want our store; each is loaded by its own name, with its own extra."""
