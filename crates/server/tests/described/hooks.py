"""Makes requests that get past the first check: a credential, keys that exist, and base64 where bytes are meant.

Some stay as schemathesis made them, which is what a careless caller sends.
"""

import base64
import os
import zlib

import schemathesis

# The labels of keys that the suite made.
LABELS = os.environ["BULLA_LABELS"].split(",")
# Empty where every caller may do everything.
TOKEN = os.environ["BULLA_TOKEN"]
CREDENTIALS = {"authorization", "x-vault-token"}
BYTES = {
    "message", "input", "digest", "data", "plaintext", "ciphertext", "signature", "mac", "context", "associated_data",
    "encrypted_data",
}  # fmt: skip


def number(value):
    """A number that depends on the value alone: schemathesis repeats what it has made."""
    return zlib.crc32(repr(value).encode("utf-8", "surrogatepass"))


def often(value):
    return number(value) % 10 < 7


def key(made):
    """A label of a key, or what schemathesis made."""
    return LABELS[number(made) // 10 % len(LABELS)] if often(made) else made


@schemathesis.hook
def before_call(context, case, kwargs):
    if number([case.path_parameters, case.query, case.body]) % 20 > 0:
        headers = {name: value for name, value in (case.headers or {}).items() if name.lower() not in CREDENTIALS}
        case.headers = {**headers, "Authorization": f"Bearer {TOKEN}"} if TOKEN else headers


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    for name in ("key", "name"):
        if path_parameters and name in path_parameters:
            path_parameters[name] = key(path_parameters[name])
    return path_parameters


@schemathesis.hook
def map_body(context, body):
    improve(body)
    return body


def improve(value):
    if isinstance(value, list):
        for item in value:
            improve(item)
    if not isinstance(value, dict):
        return
    for name, inner in value.items():
        if name == "key" and isinstance(inner, str):
            value[name] = key(inner)
        elif name in BYTES and isinstance(inner, str) and often(inner):
            value[name] = base64.b64encode(inner.encode("utf-8", "surrogatepass")).decode()
        else:
            improve(inner)
