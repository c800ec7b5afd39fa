"""Markdown memory and transcripts."""
