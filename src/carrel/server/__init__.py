"""Server protocols: REST, GraphQL, MCP and the admin console."""
