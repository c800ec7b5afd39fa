"""Hosts that run a command at each event: Claude Code, Codex, Gemini CLI, Cursor, VS Code."""
