"""What clients of LangGraph do not know of: waits, deliveries, schedules, events."""
