"""The dashboard: server-rendered pages with JSON twins, live by server-sent events.

A request passes `security`, reaches its route in `pages` (to look), `forms` or `api` (to write, only with
--write), which work with a session of `session_cache` and show `views` of it through `templating`. This room
may import every room below the edges; `cli` and `report`, whose page is made of the templates here, import
it.
"""
