"""The dashboard: server-rendered pages with JSON twins, live by server-sent events. It only shows."""
