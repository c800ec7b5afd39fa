"""Hosts that run a command at each event: Claude Code and Codex."""
