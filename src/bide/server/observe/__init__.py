"""How one sees from outside that a server is well: health, metrics, logs, traces."""
