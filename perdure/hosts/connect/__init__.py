"""Connecting command-line agents: their hooks and their MCP server are made to call perdure."""
