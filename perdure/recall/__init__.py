"""From a prompt to a block: one module per step."""
