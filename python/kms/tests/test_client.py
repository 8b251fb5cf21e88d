"""What the clients send, what they repeat, and what they make of answers."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import re
import ssl
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import httpx
import pytest

from bulla_kms import (
    AsyncClient,
    BatchError,
    Client,
    Code,
    Key,
    KmsError,
    Login,
    Rotation,
    Signature,
    SignItem,
    VerifyItem,
)

FOLDER = Path(__file__).parents[1]
Handler = Callable[[httpx.Request], httpx.Response]
SIGNED = {"key": "local/files/ed25519/x/v2", "version": 2, "signature": "AQI="}


def key_text(name: str) -> dict[str, Any]:
    """A key as the service writes it."""
    version = {
        "id": f"{name}/v1",
        "version": 1,
        "public_key": "AQ==",
        "created": "2026-01-31T09:30:00.000Z",
        "retired": None,
        "state": "usable",
        "origin": "generated",
    }
    return {
        "key": name,
        "label": None,
        "algorithm": "ed25519",
        "state": "enabled",
        "revision": 1,
        "backend": "software",
        "exportable": False,
        "minimum_version": 0,
        "rotation": {"max_age_seconds": 60},
        "head": 1,
        "versions": [version],
    }


def says(body: Any, status: int = 200, **headers: str) -> Handler:
    """Answers with JSON."""
    named = {"X-Request-Id": "r-1"} | {name.replace("_", "-"): text for name, text in headers.items()}
    return lambda _: httpx.Response(status, json=body, headers=named)


def refuses(status: int, code: str, *, retryable: bool = False, **headers: str) -> Handler:
    """Refuses a request."""
    return says({"code": code, "message": "no", "retryable": retryable}, status, **headers)


def proxy(status: int) -> Handler:
    """Answers as a server that is not the service."""
    return lambda _: httpx.Response(status, text="<html>")


def cut(request: httpx.Request) -> httpx.Response:
    """Gives no answer."""
    raise httpx.ReadError("cut", request=request)


signs, creates = says(SIGNED), says(key_text("local/files/ed25519/x"))
busy, missing = refuses(503, "busy", retryable=True), refuses(404, "key_not_found")


class Service:
    """A service that answers with the handlers in turn, and with the last one ever after."""

    def __init__(self, *handlers: Handler) -> None:
        self.handlers = handlers
        self.requests: list[httpx.Request] = []

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.requests.append(request)
        return self.handlers[min(len(self.requests), len(self.handlers)) - 1](request)

    @property
    def client(self) -> Client:
        """A client of it."""
        http = httpx.Client(transport=httpx.MockTransport(self))
        return Client("http://service/", token=" secret\n", backoff=0.001, http=http)

    @property
    def async_client(self) -> AsyncClient:
        """A client of it, for asyncio."""
        http = httpx.AsyncClient(transport=httpx.MockTransport(self))
        return AsyncClient("http://service/", token=" secret\n", backoff=0.001, http=http)


def test_the_client_without_asyncio_is_generated_from_the_other() -> None:
    spec = importlib.util.spec_from_file_location("generate", FOLDER / "generate.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = (module.FOLDER / "_async_client.py").read_text()
    assert (module.FOLDER / "_client.py").read_text() == module.client(source), "run python generate.py"


def test_a_request_carries_the_token_and_escapes_the_key() -> None:
    service = Service(signs)
    assert service.client.sign("a/b c", b"\x01\x02\x03") == Signature("local/files/ed25519/x/v2", 2, b"\x01\x02")
    (request,) = service.requests
    assert request.url.raw_path == b"/api/v1/keys/a%2Fb%20c/sign"
    assert request.headers["Authorization"] == "Bearer secret"
    assert json.loads(request.content) == {"message": "AQID"}


Action = Callable[[Client], object]


def sign(client: Client) -> object:
    return client.sign("k", b"")


def create(client: Client) -> object:
    return client.create_key()


@pytest.mark.parametrize(
    ("action", "handlers", "requests", "code"),
    [
        pytest.param(sign, [busy, busy, signs], 3, None, id="a busy service is asked again"),
        pytest.param(sign, [busy], 4, Code.BUSY, id="and not for ever"),
        pytest.param(sign, [missing], 1, Code.KEY_NOT_FOUND, id="a refusal stands"),
        pytest.param(sign, [cut, signs], 2, None, id="a lost answer to a signature is asked for again"),
        pytest.param(create, [cut, creates], 2, None, id="and one to a creation"),
        pytest.param(create, [cut], 4, Code.UNREACHABLE, id="an answer that is lost for ever is an error"),
        pytest.param(create, [busy, creates], 2, None, id="a creation that was refused for now is repeated"),
        pytest.param(sign, [proxy(429), proxy(503), signs], 3, None, id="a busy proxy is asked again"),
        pytest.param(sign, [proxy(502)], 1, Code.HTTP, id="a broken proxy is not asked again"),
        pytest.param(
            sign, [refuses(503, "busy", retryable=True, Retry_After="31")], 1, Code.BUSY, id="31 seconds are too long"
        ),
    ],
)
def test_only_what_may_help_is_repeated(
    action: Action, handlers: list[Handler], requests: int, code: Code | None
) -> None:
    service = Service(*handlers)
    if code is None:
        action(service.client)
    else:
        with pytest.raises(KmsError) as caught:
            action(service.client)
        assert caught.value.code == code
    assert len(service.requests) == requests


def test_a_pause_is_as_long_as_the_service_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    Service(refuses(503, "busy", retryable=True, Retry_After="7"), signs).client.sign("k", b"")
    (pause,) = pauses
    assert 7 <= pause < 8


def test_a_change_has_a_key_by_which_its_repetition_is_recognized() -> None:
    service = Service(cut, creates, creates, signs)
    client = service.client
    client.create_key()
    client.create_key()
    client.sign("k", b"")
    first, again, second, signature = (request.headers.get("Idempotency-Key") for request in service.requests)
    assert first and first == again and second and second != first and signature is None


def test_an_error_says_what_the_service_says() -> None:
    with pytest.raises(KmsError, match=r"no \(key_usage_mismatch, request r-1\)") as caught:
        Service(refuses(400, "key_usage_mismatch")).client.sign("k", b"")
    error = caught.value
    assert (error.code, error.status, error.request_id, error.retryable) == (Code.KEY_USAGE_MISMATCH, 400, "r-1", False)


def test_a_certificate_that_is_refused_is_not_asked_again() -> None:
    def refused(cause: Exception) -> Handler:
        def handler(request: httpx.Request) -> httpx.Response:
            raise httpx.ConnectError(str(cause), request=request) from cause

        return handler

    for cause in (
        ssl.SSLCertVerificationError(1, "certificate verify failed"),
        ssl.SSLError(1, "[SSL: TLSV13_ALERT_CERTIFICATE_REQUIRED] tlsv13 alert certificate required"),
    ):
        service = Service(refused(cause))
        with pytest.raises(KmsError) as caught:
            service.client.sign("k", b"")
        assert caught.value.code == Code.CERTIFICATE and not caught.value.retryable
        assert isinstance(caught.value.__cause__, httpx.ConnectError)
        assert len(service.requests) == 1


def test_a_batch_has_a_result_for_each_item_and_long_ones_are_several_requests() -> None:
    def answers(request: httpx.Request) -> httpx.Response:
        refused = {"error": {"code": "key_disabled", "message": "no", "retryable": False}}
        items = json.loads(request.content)["items"]
        results = [refused if item["key"] == "no" else SIGNED | {"signature": item["message"]} for item in items]
        return httpx.Response(200, json={"results": results})

    service = Service(answers)
    items = [SignItem("no" if at == 1500 else "k", str(at).encode()) for at in range(2001)]
    for at, result in enumerate(service.client.sign_many(items)):
        if at == 1500:
            assert isinstance(result, KmsError) and result.code == Code.KEY_DISABLED
        else:
            assert isinstance(result, Signature) and result.signature == str(at).encode()
    assert len(service.requests) == 3
    with pytest.raises(KmsError) as caught:
        Service(says({"results": []})).client.sign_many(items[:1])
    assert caught.value.code == Code.UNEXPECTED_ANSWER


def test_a_long_batch_keeps_its_results_when_a_later_request_fails() -> None:
    full = says({"results": [SIGNED | {"valid": True}] * 1000})
    service = Service(full, missing, full, missing, full, missing)
    with pytest.raises(BatchError) as signed:
        service.client.sign_many([SignItem("k", b"")] * 1001)
    assert signed.value.code == Code.KEY_NOT_FOUND and signed.value.status == 404
    assert signed.value.results == [Signature("local/files/ed25519/x/v2", 2, b"\x01\x02")] * 1000
    assert isinstance(signed.value.__cause__, KmsError)
    with pytest.raises(BatchError) as verified:
        service.client.verify_many([VerifyItem("k", b"", b"")] * 1001)
    assert len(verified.value.results) == 1000 and all(verified.value.results)

    async def work() -> None:
        async with service.async_client as client:
            await client.sign_many([SignItem("k", b"")] * 1001)

    with pytest.raises(BatchError) as awaited:
        asyncio.run(work())
    assert awaited.value.results == signed.value.results


def test_nothing_but_true_is_a_valid_signature() -> None:
    for body in ({"valid": "yes"}, {"valid": 1}, {}):
        assert not Service(says(body)).client.verify("k", b"", b"")
    results = {"results": [{"valid": True, "error": {"code": "x"}}, {"valid": True}]}
    bad, good = Service(says(results)).client.verify_many([VerifyItem("k", b"", b"")] * 2)
    assert not bad and bad.error and bad.error.code == "x"
    assert good and good.error is None


def test_pages_are_one_sequence() -> None:
    pages = says({"keys": [key_text("a")], "next": "x/y"}), says({"keys": [key_text("b")], "next": None})
    service = Service(*pages)
    first, second = service.client.keys()
    assert (first.id, second.id) == ("a", "b")
    assert first.rotation == Rotation(max_age=timedelta(seconds=60))
    assert first.versions[0].public_key == b"\x01"
    assert first.versions[0].created == datetime(2026, 1, 31, 9, 30, tzinfo=timezone.utc)
    assert service.requests[1].url.raw_path == b"/api/v1/keys?limit=1000&after=x%2Fy"


def test_requests_for_approval_are_one_sequence() -> None:
    def approval(id: str) -> dict[str, object]:
        time, subject = "2026-01-31T09:30:00.000Z", {"operation": "sign", "digest": "d", "size": 1}
        request = {"id": id, "key": "k", "subject": subject, "requester": "ci", "reason": "r", "created": time, "expires": time}
        return {"request": request, "state": "waiting", "threshold": 1, "statements": []}

    service = Service(says({"approvals": [approval("a")], "next": "a"}), says({"approvals": [approval("b")], "next": None}))
    assert [one.id for one in service.client.approvals()] == ["a", "b"]
    paths = [request.url.raw_path for request in service.requests]
    assert paths == [b"/api/v1/approvals?limit=1000", b"/api/v1/approvals?limit=1000&after=a"]


def test_entries_of_the_audit_log_are_one_sequence_from_any_number_on() -> None:
    entry = {"time": "2026-01-31T09:30:00.000Z", "who": "app", "operation": "sign", "result": "ok", "line": "l", "key": None}
    pages = says({"entries": [{**entry, "number": 5}], "next": 5}), says({"entries": [{**entry, "number": 6}], "next": None})
    service = Service(*pages)
    first, second = service.client.audit_entries(5)
    assert (first.number, second.number, first.actor, first.key) == (5, 6, "app", None)
    assert first.time == datetime(2026, 1, 31, 9, 30, tzinfo=timezone.utc)
    paths = [request.url.raw_path for request in service.requests]
    assert paths == [b"/api/v1/audit-log/entries?limit=1000&after=4", b"/api/v1/audit-log/entries?limit=1000&after=5"]
    service = Service(says({"entries": [], "next": None}))
    assert list(service.client.audit_entries()) == []
    assert service.requests[0].url.raw_path == b"/api/v1/audit-log/entries?limit=1000"


def test_a_decryption_names_its_approval() -> None:
    service = Service(says({"key": "k", "version": 1, "plaintext": ""}))
    service.client.decrypt("orders", b"\1\2", context=b"\3", approval="id")
    assert json.loads(service.requests[0].content) == {"ciphertext": "AQI=", "context": "Aw==", "approval": "id"}


def test_a_key_is_created_as_asked() -> None:
    service = Service(creates)
    service.client.create_key(label="l", algorithm="ecdsa-p256", signs_digests=True, rotation=Rotation(max_uses=5))
    asked = {"label": "l", "algorithm": "ecdsa-p256", "signs_digests": True, "rotation": {"max_uses": 5}}
    assert json.loads(service.requests[0].content) == asked


@pytest.mark.parametrize("body", [[], None, {"key": 1}, SIGNED | {"signature": "*"}, SIGNED | {"version": True}])
def test_an_answer_of_another_form_is_an_error(body: Any) -> None:
    service = Service(says(body))
    with pytest.raises(KmsError) as caught:
        service.client.sign("k", b"")
    assert caught.value.code == Code.UNEXPECTED_ANSWER and not caught.value.retryable
    assert len(service.requests) == 1


@pytest.mark.parametrize("address", ["", "localhost:8200", "ftp://x/", "http://"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="write http://HOST:PORT"):
        Client(address)


def test_asyncio_has_the_same() -> None:
    async def work() -> tuple[list[Key], list[Signature | KmsError]]:
        pages = says({"keys": [key_text("a")], "next": None}), busy, says({"results": [SIGNED]})
        service = Service(*pages)
        async with service.async_client as client:
            keys = [key async for key in client.keys()]
            return keys, await client.sign_many([SignItem("k", b"")])

    keys, signatures = asyncio.run(work())
    assert [key.id for key in keys] == ["a"]
    assert signatures == [Signature("local/files/ed25519/x/v2", 2, b"\x01\x02")]


def test_a_task_that_is_canceled_asks_no_more() -> None:
    async def work() -> int:
        refused = asyncio.Event()

        def note(request: httpx.Request) -> httpx.Response:
            refused.set()
            return refuses(503, "busy", retryable=True, Retry_After="30")(request)

        service = Service(note)
        task = asyncio.create_task(service.async_client.sign("k", b""))
        await refused.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return len(service.requests)

    assert asyncio.run(work()) == 1


def test_the_codes_are_those_of_the_services_description() -> None:
    description = (FOLDER.parents[1] / "spec/http-api.md").read_text()
    table = description.split("| code | status | retry |")[1].split("\n\n")[0]
    described = re.findall(r"^\| `([a-z_]+)` \|", table, re.MULTILINE)
    own = {Code.HTTP, Code.CERTIFICATE, Code.UNREACHABLE, Code.UNEXPECTED_ANSWER}
    assert len(described) > 50 and described == [code for code in Code if code not in own]


def test_base64_is_that_of_the_service() -> None:
    message = bytes(range(256))
    service = Service(signs)
    service.client.sign("k", message)
    assert json.loads(service.requests[0].content)["message"] == b64encode(message).decode()


def logging_in(jwt: Callable[[], str], lifetime: float = 3600.0) -> tuple[Service, Client]:
    """A client that logs in, of a service that gives tokens by their number."""
    number = 0

    def answer(request: httpx.Request) -> httpx.Response:
        nonlocal number
        if request.url.path != "/api/v1/login":
            return signs(request)
        if json.loads(request.content)["jwt"] == "forged":
            return refuses(403, "forbidden")(request)
        number += 1
        expires = (datetime.now(timezone.utc) + timedelta(seconds=lifetime)).isoformat()
        body = {"token": f"t{number}", "revocation_id": "r", "holder": "ci/a", "operations": ["sign"], "expires": expires}
        return says(body, 201)(request)

    service = Service(answer)
    http = httpx.Client(transport=httpx.MockTransport(service))
    return service, Client("http://service", login=Login("release", jwt), http=http)


def sent_tokens(service: Service) -> list[str | None]:
    """The tokens of the requests."""
    return [request.headers.get("Authorization") for request in service.requests]


def test_a_client_logs_in_once_and_again_before_its_token_expires() -> None:
    service, client = logging_in(lambda: "jwt\n")
    client.sign("k", b"")
    client.sign("k", b"")
    assert sent_tokens(service) == [None, "Bearer t1", "Bearer t1"]
    assert json.loads(service.requests[0].content) == {"role": "release", "jwt": "jwt"}
    # Three quarters of a lifetime that is over have passed.
    service, client = logging_in(lambda: "jwt", -1.0)
    client.sign("k", b"")
    client.sign("k", b"")
    assert sent_tokens(service) == [None, "Bearer t1", None, "Bearer t2"]


def test_tasks_share_one_login() -> None:
    service, _ = logging_in(lambda: "jwt")

    async def sign_often() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(service))
        client = AsyncClient("http://service", login=Login("release", lambda: "jwt"), http=http)
        await asyncio.gather(*(client.sign("k", b"") for _ in range(8)))

    asyncio.run(sign_often())
    assert sorted(sent_tokens(service), key=str) == ["Bearer t1"] * 8 + [None]


def test_a_login_that_fails_is_the_error_of_the_call_and_is_tried_again() -> None:
    jwts = iter(["missing", "forged", "jwt"])

    def jwt() -> str:
        text = next(jwts)
        if text == "missing":
            raise FileNotFoundError(text)
        return text

    _, client = logging_in(jwt)
    with pytest.raises(FileNotFoundError):
        client.sign("k", b"")
    with pytest.raises(KmsError) as refused:
        client.sign("k", b"")
    assert refused.value.code == Code.FORBIDDEN
    assert client.sign("k", b"").version == 2


def test_a_login_shows_no_token() -> None:
    _, client = logging_in(lambda: "unused")
    login = client.log_in("release", " jwt ")
    assert (login.token, login.holder, login.operations) == ("t1", "ci/a", ["sign"])
    assert login.expires > datetime.now(timezone.utc)
    assert "t1" not in repr(login)
