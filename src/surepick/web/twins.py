"""Pages and their JSON twins: one function makes the model, the page shows it, the twin sends it."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response

from surepick import views
from surepick.web.templating import Renderer

Model = Callable[..., Awaitable[Any]]  # what a page shows, from the parameters of its URL


class PlainJson(Response):
    """An answer in JSON, from anything that is made of views and plain values."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """As bytes; NaN and infinities are null."""
        return json.dumps(views.to_json(content), ensure_ascii=False, allow_nan=False).encode()


def twin(routes: FastAPI, renderer: Renderer, path: str, template: str) -> Callable[[Model], Model]:
    """Serve what the function returns at `path` as a page and at `/api` + `path` as JSON."""

    def register(model: Model) -> Model:
        async def page(**arguments: Any) -> HTMLResponse:
            return HTMLResponse(renderer.page(template, await model(**arguments)))

        async def data(**arguments: Any) -> PlainJson:
            return PlainJson(await model(**arguments))

        for serve, at in ((page, path), (data, "/api" + path)):
            # what FastAPI reads the parameters from, with its annotations as types
            signature = inspect.signature(model, eval_str=True)
            setattr(serve, "__signature__", signature)  # noqa: B010  # functions declare no such attribute
            routes.get(at, response_model=None)(serve)
        return model

    return register
