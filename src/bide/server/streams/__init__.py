"""The log of threads as streams of server-sent events."""
