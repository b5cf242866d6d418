"""The sessions in a browser, as JSON and for MCP.

A request passes the guard in `security` and reaches its route in `app`. Changes go through the one table of
`actions`, whether they come as a form (`forms`), as JSON or from `mcp`; pages show a View through `pages` and
the templates, live by `live`. `session_cache` keeps sessions open, `uploads` reads files in another process.
"""
