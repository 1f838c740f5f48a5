"""Agent tools: `builtin/` has one module per tool, `registry` lists them."""
