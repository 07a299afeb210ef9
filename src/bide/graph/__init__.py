"""What users write and call: `StateGraph`, and the compiled graph that runs."""
