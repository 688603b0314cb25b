"""The OpenAPI document, and a page that shows it without anything from elsewhere."""

from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from spinegraph.apps.server.problems import MEDIA_TYPE, Problem
from spinegraph.apps.server.security import is_write

_PROBLEMS = {
    "400": "The body is not JSON.",
    "401": "The token is missing or wrong.",
    "404": "There is no such node, edge or page.",
    "405": "The method is not allowed here.",
    "409": "The name is taken.",
    "413": "The body is too large.",
    "415": "The body is not sent as JSON.",
    "421": "The host is not this machine.",
    "422": "A rule is broken; field and rule say where and which.",
    "500": "The service made a mistake.",
    "503": "Not now: too much to do, or something is not ready.",
    "504": "It would take too long.",
}
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    ":root{color-scheme:light dark}code{font-family:ui-monospace,monospace}"
    "h2{margin-top:2rem;font-size:1.1rem}td,th{text-align:left;padding:.1rem .8rem .1rem 0}"
)


def install(app: FastAPI) -> None:
    """Give the app an OpenAPI document that tells of problems and of the token."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _document(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]


def _document(app: FastAPI) -> dict[str, Any]:
    whole = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    parts = whole.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    schemas["Problem"] = Problem.model_json_schema()
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    told = {"schema": {"$ref": "#/components/schemas/Problem"}}
    for path, methods in whole["paths"].items():
        for method, operation in methods.items():
            for status, words in _PROBLEMS.items():
                operation["responses"][status] = {"description": words, "content": {MEDIA_TYPE: told}}
            operation["security"] = [{"token": []}] if is_write(method.upper(), path) else [{}, {"token": []}]
    return whole


def page(document: dict[str, Any]) -> str:
    """Return a page about every route: what it does, what it takes, whether it needs the token.

    Examples
    --------
    >>> page({"info": {"title": "T", "version": "1"}, "paths": {}}).startswith("<!doctype html>")
    True
    """
    parts = [f"<h1>{escape(document['info']['title'])} {escape(document['info']['version'])}</h1>"]
    parts.append('<p>The document for programs is <a href="/openapi.json">/openapi.json</a>.</p>')
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            token = " · token" if operation["security"] == [{"token": []}] else ""
            parts.append(f"<h2><code>{method.upper()} {escape(path)}</code>{token}</h2>")
            parts.append(f"<p>{escape(operation.get('description', ''))}</p>")
            rows = [_row(one["name"], one["in"], one["schema"]) for one in operation.get("parameters", [])]
            if "requestBody" in operation:
                rows.append(
                    _row("body", "body", operation["requestBody"]["content"]["application/json"]["schema"])
                )
            if rows:
                parts.append(f"<table>{''.join(rows)}</table>")
    for name, schema in document.get("components", {}).get("schemas", {}).items():
        rows = [_row(key, "", value) for key, value in schema.get("properties", {}).items()]
        parts.append(
            f'<h2 id="{escape(name)}">{escape(name)}</h2><p>{escape(schema.get("description", ""))}</p>'
        )
        parts.append(f"<table>{''.join(rows)}</table>")
    title = escape(document["info"]["title"])
    body = "\n".join(parts)
    head = f'<meta charset="utf-8"><title>{title}</title><style>{_STYLE}</style>'
    return f'<!doctype html><html lang="en"><head>{head}</head><body>{body}</body></html>'


def _row(name: str, where: str, schema: dict[str, Any]) -> str:
    words = escape(schema.get("description", ""))
    cells = (where, _kind(schema), words)
    return f"<tr><th><code>{escape(name)}</code></th>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>"


def _kind(schema: dict[str, Any]) -> str:
    """Say in a few words what a value is."""
    if "$ref" in schema:
        name = escape(schema["$ref"].rsplit("/", 1)[-1])
        return f'<a href="#{name}">{name}</a>'
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_kind(one) for one in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"list of {_kind(schema.get('items', {}))}"
    return escape(str(schema.get("type", "anything")))
