"""The routes, objects and headers that clients of LangGraph know."""
