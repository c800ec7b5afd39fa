"""From messages to facts: one module per step."""
