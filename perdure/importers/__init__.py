"""Memories and conversations of other programs, brought in."""
