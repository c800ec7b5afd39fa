"""perdure as an MCP server: tools, resources and a prompt for any client of the Model Context Protocol."""
