"""The web application: routes, errors, pages and the guard in front of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response

from spinegraph import __version__
from spinegraph.apps.server import (
    openapi,
    problems,
    routes_explore,
    routes_export,
    routes_health,
    routes_read,
    routes_write,
)
from spinegraph.apps.server.directory import routed
from spinegraph.apps.server.pages import POLICY, Page, read_pages
from spinegraph.apps.server.quick import QuickSimilar
from spinegraph.apps.server.security import Guard
from spinegraph.apps.server.service import Service


def create_app(service: Service, token: str, *, is_local: bool = True) -> Guard:
    """Return the web application of a service, ready for an ASGI server.

    Parameters
    ----------
    service : Service
    token : str
        Needed for writing, and for everything that tells of data when ``is_local`` is false.
    is_local : bool
        Whether the server listens on loopback.
    """
    pages = read_pages()
    app = FastAPI(
        title="spinegraph",
        version=__version__,
        description="Vectors, look-alikes and reasons for nodes that arrive now.",
        docs_url=None,
        redoc_url=None,
        lifespan=_lifespan,
    )
    app.state.service = service
    problems.install(app)
    # The route of a node itself ends in any path, so it comes last.
    for part in (routes_explore, routes_write, routes_export, routes_health, routes_read):
        app.include_router(part.router)
    openapi.install(app)
    app.add_api_route("/docs", _docs(app), include_in_schema=False)
    for path, page in pages.items():
        app.add_api_route(path, _page(page), include_in_schema=False, name=f"page {path}")
    return Guard(
        app,
        token=token,
        is_local=is_local,
        limits=service.limits,
        is_page=lambda path: path in pages,
        routed=routed,
        quick=QuickSimilar(service).body,
        observe=service.metrics.saw_request,
    )


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    app.state.service.start()
    yield
    app.state.service.close()


def _docs(app: FastAPI) -> Any:
    async def docs() -> HTMLResponse:
        policy = {"Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"}
        return HTMLResponse(openapi.page(app.openapi()), headers=policy)

    return docs


def _page(page: Page) -> Any:
    async def show() -> Response:
        headers = {"Content-Security-Policy": POLICY, "Cache-Control": "no-cache"}
        return Response(page.body, headers=headers, media_type=page.media_type)

    return show
