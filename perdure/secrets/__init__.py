"""Secrets: found in texts, slots and tables, and left out of what is kept."""
