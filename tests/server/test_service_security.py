"""Safe by default: who may ask what, and how much."""

import asyncio
import gc
import gzip
import json
import resource
import socket
import time
from types import SimpleNamespace, TracebackType
from unittest.mock import Mock

import httpx
import pytest
from starlette.requests import Request

from running_service import Running
from spinegraph.apps.server.app import Guard, _listen, create_app, is_write, make_token, read_token
from spinegraph.errors import MissingFileError, ParameterError

OPEN = {"/healthz", "/readyz"}


@pytest.fixture(scope="module")
def public(model_folder, tmp_path_factory):
    """A service that others reach: everything that tells of data needs the token."""
    folder = tmp_path_factory.mktemp("public")
    (folder / "token").write_text("a-token-of-our-own-choice\n")
    arguments = ["--host", "0.0.0.0", "--token-file", str(folder / "token")]
    with Running(model_folder, folder / "store", arguments) as running:
        yield running


def operations(running):
    """Every method and path of the OpenAPI document, with names filled in."""
    for path, methods in running.client.get("/openapi.json").json()["paths"].items():
        for method in methods:
            yield method.upper(), path.replace("{name}", "n1").replace("{other}", "n2")


def asked(running, method, path, token):
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    with httpx.Client(base_url=running.url, timeout=30, trust_env=False) as client:
        return client.request(method, path, headers=headers, content="{}" if method == "POST" else None)


@pytest.mark.parametrize("token", [None, "wrong", "x" * 43])
def test_writing_needs_the_token_and_reading_on_this_machine_does_not(shared_service, token):
    listed = list(operations(shared_service))
    assert len(listed) >= 16
    for method, path in listed:
        answer = asked(shared_service, method, path, token)
        if is_write(method, path):
            assert answer.status_code == 401, (method, path)
            assert answer.headers["www-authenticate"].startswith("Bearer")
            assert answer.json()["rule"] == "token"
        else:
            assert answer.status_code != 401, (method, path)


def test_only_the_page_on_this_machine_may_add_nodes_without_the_token(shared_service, public):
    def status(method, path, origin, running=shared_service):
        headers = {"Content-Type": "application/json", "Origin": origin}
        return httpx.request(method, running.url + path, headers=headers, trust_env=False).status_code

    own = shared_service.url
    assert status("POST", "/v1/nodes", own) == 422  # allowed, but empty
    elsewhere = ("https://evil.example", "null", f"{own}.evil.example", own.replace("http:", "https:"))
    assert {status("POST", "/v1/nodes", origin) for origin in elsewhere} == {401}
    assert status("DELETE", "/v1/nodes/n1", own) == status("POST", "/v1/edges", own) == 401
    assert status("POST", "/v1/nodes", public.url, public) == 401


@pytest.mark.parametrize("token", [None, "a-token-of-our-own-choicE"])
def test_everything_that_tells_of_data_needs_the_token_elsewhere(public, token):
    for method, path in operations(public):
        status = asked(public, method, path, token).status_code
        assert (status == 401) == (path not in OPEN), (method, path)
    assert asked(public, "GET", "/openapi.json", token).status_code == 401
    assert asked(public, "GET", "/v1/nodes/n1", public.token).status_code == 200


def test_the_document_says_which_routes_need_the_token(shared_service):
    for path, methods in shared_service.get("/openapi.json")["paths"].items():
        for method, operation in methods.items():
            needs = operation["security"] == [{"token": []}]
            assert needs == is_write(method.upper(), path)


@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/nodes"), ("PUT", "/v1/nodes/x"), ("PATCH", "/v1/map"), ("DELETE", "/v1/nodes/x")],
)
def test_every_method_that_may_write_is_a_write(method, path):
    assert is_write(method, path)


def test_a_made_token_is_for_its_owner_alone(tmp_path):
    token = make_token(tmp_path / "token")
    assert (tmp_path / "token").stat().st_mode & 0o777 == 0o600
    assert len(token) >= 43
    assert read_token(tmp_path / "token") == token


@pytest.mark.parametrize("text", ["", "short", "with spaces in the middle", "ümlaut-ümlaut-ümlaut"])
def test_a_weak_token_is_refused(tmp_path, text):
    (tmp_path / "token").write_text(text)
    with pytest.raises(ParameterError, match="16 or more ASCII characters"):
        read_token(tmp_path / "token")


def test_a_missing_token_file_is_an_error(tmp_path):
    with pytest.raises(MissingFileError, match="no such file"):
        read_token(tmp_path / "token")


def test_the_token_is_compared_in_constant_time(monkeypatch, shared_service):
    seen = []
    import spinegraph.apps.server.app as security

    compare = security.hmac.compare_digest
    monkeypatch.setattr(security.hmac, "compare_digest", lambda a, b: seen.append((a, b)) or compare(a, b))
    guard = Guard(None, None, "t" * 20, is_local=True)
    assert guard._has_token(b"Bearer " + b"t" * 20)
    assert not guard._has_token(b"Bearer t")
    assert not guard._has_token(b"")
    assert len(seen) == 3
    assert all(len(a) == len(b) == 32 for a, b in seen)


def test_another_name_for_this_machine_is_refused(shared_service):
    """A page elsewhere whose name was made to point here must not read anything."""
    for host in ("evil.example", "evil.example:80", "127.0.0.1.evil.example"):
        answer = httpx.get(f"{shared_service.url}/v1/map", headers={"Host": host}, trust_env=False)
        assert answer.status_code == 421


@pytest.mark.parametrize(
    "hosts", [["localhost", "localhost"], ["local host"], ["localhost:port"], ["a/b"], ["[::1"], [""]]
)
def test_a_malformed_host_or_two_are_refused(shared_service, hosts):
    head = "".join(f"Host: {host}\r\n" for host in hosts)
    answer = raw(shared_service, f"GET /healthz HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode())
    assert answer.startswith(b"HTTP/1.1 400"), answer
    assert b"application/problem+json" in answer


def test_the_page_is_found_whatever_the_host(monkeypatch):
    """Old versions of Starlette cannot parse the URL of this request."""
    app, answers = create_app(Mock(), "a-token-of-our-own-choice", is_local=False), []
    headers = [(b"host", b"[1:2]")]
    scope = {"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": headers}

    async def send(message):
        answers.append(message.get("status"))

    monkeypatch.setattr(Request, "url", property(lambda self: 1 / 0))
    asyncio.run(app(scope, None, send))
    assert answers[0] == 200


def test_what_is_not_http_gets_a_problem_document(shared_service):
    answer = raw(shared_service, b"nonsense\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 400")
    assert json.loads(answer.partition(b"\r\n\r\n")[2])["status"] == 400


def raw(running, request):
    host, port = running.url.removeprefix("http://").split(":")
    answer = b""
    with socket.create_connection((host, int(port)), timeout=10) as opened:
        opened.sendall(request)
        while part := opened.recv(65536):
            answer += part
    return answer


def test_a_wrong_token_is_told_apart_from_a_missing_one(shared_service):
    missing, wrong = (asked(shared_service, "POST", "/v1/edges", token) for token in (None, "wrong"))
    assert "no token was sent" in missing.json()["detail"]
    assert "the token is wrong" in wrong.json()["detail"]
    assert "invalid_token" in wrong.headers["www-authenticate"]
    assert "invalid_token" not in missing.headers["www-authenticate"]


def allow_few_files():
    resource.setrlimit(resource.RLIMIT_NOFILE, (300, 300))


def test_many_half_sent_headers_and_bodies_do_not_stop_it(model_folder, tmp_path):
    head = b"POST /v1/embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with Running(model_folder, tmp_path / "store", before=allow_few_files) as running:
        host, port = running.url.removeprefix("http://").split(":")
        for piece in (b"GET / HTTP/1.1\r\nX-Slow: ", head + b"Content-Length: 9\r\n\r\n{", b""):
            slow = []
            for number in range(350):
                slow.append(socket.create_connection((host, int(port)), timeout=10))
                slow[-1].sendall(piece)
                if number % 50 == 49:
                    started = time.perf_counter()
                    assert httpx.get(f"{running.url}/healthz", trust_env=False).status_code == 200
                    assert time.perf_counter() - started < 5  # less than any time-out
            for one in slow:
                one.close()
        running.add("after", ["n1"])


def test_no_other_site_is_allowed_in(shared_service):
    headers = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    preflight = shared_service.client.options("/v1/embed", headers=headers)
    assert preflight.status_code in (401, 405)
    answer = shared_service.client.get("/healthz", headers=headers)
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


def test_a_form_of_another_site_is_not_json(shared_service):
    answer = shared_service.client.post("/v1/embed", content="{}", headers={"Content-Type": "text/plain"})
    assert answer.status_code == 415


def test_a_body_that_cannot_be_read_is_told_why(shared_service):
    def ask(content, **headers):
        headers = {"Content-Type": "application/json", **headers}
        return shared_service.client.post("/v1/embed", content=content, headers=headers)

    packed = ask(gzip.compress(b"{}"), **{"Content-Encoding": "gzip"})
    assert (packed.status_code, packed.json()["rule"]) == (415, "content-encoding")
    assert "send uncompressed JSON" in packed.json()["detail"]
    for content in ('{"name": "é"}'.encode("latin-1"), gzip.compress(b"{}")):
        answer = ask(content)
        assert answer.status_code == 400
        assert "UTF-8" in answer.json()["detail"]
        assert answer.json()["field"] == "body"


def test_too_large_a_body_is_refused_whether_announced_or_not(shared_service):
    big = b"[" + b"0," * 3_000_000 + b"0]"
    announced = shared_service.client.post(
        "/v1/embed", content=big, headers={"Content-Type": "application/json"}
    )
    assert announced.status_code == 413

    def streamed():
        for start in range(0, len(big), 65536):
            yield big[start : start + 65536]

    answer = shared_service.client.post(
        "/v1/embed", content=streamed(), headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413


def test_the_bodies_of_refused_requests_are_not_kept():
    guard = Guard(None, SimpleNamespace(metrics=Mock()), "a-token-of-our-own-choice", is_local=True)
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/v1/embed", "query_string": b"", "headers": headers}
    answers = []

    async def receive():
        return {"type": "http.request", "body": b" " * 5_000_000, "more_body": True}

    async def send(message):
        answers.append(message.get("status"))

    for _ in range(3):
        asyncio.run(guard(dict(scope), receive, send))
    assert answers.count(413) == 3
    gc.collect()
    traces = [one for one in gc.get_objects() if type(one) is TracebackType]  # proxies may be dead
    assert not [one for one in traces if one.tb_frame.f_locals.get("self") is guard]


def test_too_many_nodes_are_refused(shared_service):
    nodes = [{"name": f"x{i}", "features": {}} for i in range(1001)]
    answer = shared_service.client.post("/v1/nodes", json={"nodes": nodes})
    assert answer.status_code == 422
    assert answer.json()["field"] == "body.nodes"


def test_deep_nesting_is_a_problem_and_no_fault(shared_service):
    answer = shared_service.client.post(
        "/v1/embed", content="[" * 100_000, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code in (400, 422)


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/nodes/..%2f..%2fetc", "//etc"]
)
def test_no_path_reaches_a_file(shared_service, path):
    host, port = shared_service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as opened:
        opened.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while part := opened.recv(65536):
            answer += part
    assert b" 404 " in answer.split(b"\r\n")[0]
    assert b"root:" not in answer


def test_a_slow_sender_holds_nobody_up(shared_service):
    host, port = shared_service.url.removeprefix("http://").split(":")
    slow = [socket.create_connection((host, int(port)), timeout=10) for _ in range(20)]
    for one in slow:
        one.sendall(b"POST /v1/embed HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n")
        one.sendall(b"Content-Length: 1000\r\n\r\n{")
    started = time.perf_counter()
    assert shared_service.client.get("/healthz").status_code == 200
    assert time.perf_counter() - started < 5
    for one in slow:
        one.close()


def test_listening_where_others_do_says_so(model_folder, tmp_path, shared_service):
    port = shared_service.url.rsplit(":", 1)[1]
    with pytest.raises(RuntimeError, match="cannot listen"):
        Running(model_folder, tmp_path / "store", ["--port", port]).start()
    with pytest.raises(ParameterError, match=r"another --port$"):  # explore has no --host
        _listen("127.0.0.1", int(port))
    with pytest.raises(ParameterError, match=r"another --host$"):
        _listen("192.0.2.1", 0)


@pytest.mark.parametrize(
    "lines",
    [
        ["Authorization: Bearer other", "Authorization: Bearer TOKEN"],
        ["Authorization: Bearer TOKEN", "Idempotency-Key: a", "Idempotency-Key: b"],
        ["Authorization: Bearer TOKEN", "Transfer-Encoding: chunked"],
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(shared_service, lines):
    lines = [line.replace("TOKEN", shared_service.token) for line in lines]
    body = b'{"name": "either", "edges": ["n1"], "features": {}}'
    head = ["POST /v1/nodes HTTP/1.1", "Host: localhost", "Content-Type: application/json", *lines]
    host, port = shared_service.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as opened:
        opened.sendall("\r\n".join([*head, f"Content-Length: {len(body)}", "\r\n"]).encode() + body)
        answer = opened.recv(65536)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b"application/problem+json" in answer
    assert shared_service.client.get("/v1/nodes/either").status_code == 404


def test_an_empty_key_is_named(shared_service):
    headers = {"Idempotency-Key": "", "Authorization": f"Bearer {shared_service.token}"}
    edges = [{"source": "n1", "target": "n2"}]
    answer = shared_service.client.post("/v1/edges", headers=headers, json={"edges": edges}).json()
    assert (answer["status"], answer["field"]) == (422, "header.Idempotency-Key")


def test_deep_nesting_is_no_json(shared_service):
    headers = {"Content-Type": "application/json"}
    answer = shared_service.client.post("/v1/embed", headers=headers, content=b"[" * 100_000)
    assert answer.status_code == 400
    assert "nested too deeply" in answer.json()["detail"]
