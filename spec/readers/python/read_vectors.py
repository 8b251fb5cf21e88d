"""Reads the vectors of spec/vectors in Python, and with them what bulla writes: keys, signatures, envelopes, wrapped keys, tokens.

Usage: python read_vectors.py FOLDER. Prints one line for each group; ends with status 1 when something does not hold.
"""

import base64
import hashlib
import hmac
import json
import re
import struct
import sys
from pathlib import Path

from blake3 import blake3
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap_with_padding
from dilithium_py.ml_dsa import ML_DSA_44, ML_DSA_65, ML_DSA_87
from kyber_py.ml_kem import ML_KEM_512, ML_KEM_768, ML_KEM_1024
from slhdsa import PublicKey as SlhDsaPublicKey
from slhdsa import sha2_128s, shake_128s

ML_DSA = {"ml-dsa-44": ML_DSA_44, "ml-dsa-65": ML_DSA_65, "ml-dsa-87": ML_DSA_87}
ML_KEM = {"ml-kem-512": ML_KEM_512, "ml-kem-768": ML_KEM_768, "ml-kem-1024": ML_KEM_1024}
SLH_DSA = {"slh-dsa-sha2-128s": sha2_128s, "slh-dsa-shake-128s": shake_128s}

NAME = r"[a-z0-9][a-z0-9._-]{0,63}"
ALGORITHM = (
    r"ed25519|ecdsa-p(?:256|384|521)|rsa-(?:2048|3072|4096)|ml-dsa-(?:44|65|87)|ml-dsa-65-ed25519|slh-dsa-(?:sha2|shake)-(?:128|192|256)[sf]|ml-kem-(?:512|768|1024)|x-wing"
    r"|aes-(?:128|256)-gcm|x?chacha20-poly1305|hmac-sha(?:256|384|512)|blake3"
)
UUID = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
KEY_ID = re.compile(rf"({NAME})/({NAME})/({ALGORITHM})/({UUID})/v([1-9][0-9]{{0,9}})")

# The field of the curve, its order and a number d, for Ed25519ph, which `cryptography` does not
# have.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def ed25519_verifies(public_key, message, signature):
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except InvalidSignature:
        return False
    return True


def add(a, b):
    """Adds two points in affine coordinates."""
    (x1, y1), (x2, y2) = a, b
    product = D * x1 * x2 * y1 * y2 % P
    x = (x1 * y2 + x2 * y1) * pow(1 + product, P - 2, P) % P
    y = (y1 * y2 + x1 * x2) * pow(1 - product, P - 2, P) % P
    return x, y


def multiply(scalar, point):
    result = (0, 1)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point, scalar = add(point, point), scalar >> 1
    return result


def decompress(encoded):
    y = int.from_bytes(encoded, "little") & ((1 << 255) - 1)
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    assert (x * x - square) % P == 0, "no point of the curve"
    return (P - x if x & 1 != encoded[31] >> 7 else x), y


def ed25519ph_verifies(public_key, message, context, signature):
    """RFC 8032, section 5.1.7, with the dom2 of Ed25519ph."""
    domain = b"SigEd25519 no Ed25519 collisions" + bytes([1, len(context)]) + context
    scalar = int.from_bytes(signature[32:], "little")
    if scalar >= L:
        return False
    digest = hashlib.sha512(message).digest()
    challenge = hashlib.sha512(domain + signature[:32] + public_key + digest).digest()
    base = decompress((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))
    right = add(
        decompress(signature[:32]),
        multiply(int.from_bytes(challenge, "little") % L, decompress(public_key)),
    )
    return multiply(scalar, base) == right


def key_ids(cases):
    for case in cases["valid"]:
        parts = KEY_ID.fullmatch(case["id"])
        assert parts, case["id"]
        found = dict(zip(("tenant", "purpose", "algorithm", "uuid"), parts.groups()))
        assert {**found, "version": int(parts[5])} == {name: case[name] for name in case if name != "id"}
    for text in cases["invalid"]:
        parts = KEY_ID.fullmatch(text)
        assert not parts or int(parts[5]) >= 2**32, text


def compressed(key):
    return key.public_bytes(serialization.Encoding.X962, serialization.PublicFormat.CompressedPoint)


def public_keys(cases):
    for case in cases:
        raw, der = bytes.fromhex(case["raw"]), bytes.fromhex(case["der"])
        body = "".join(case["pem"].splitlines()[1:-1])
        assert base64.b64decode(body) == der
        if case["algorithm"] == "ecdsa-p256":
            for key in (serialization.load_pem_public_key(case["pem"].encode()), serialization.load_der_public_key(der)):
                assert compressed(key) == raw
            continue
        assert der.endswith(raw)
        jwk = json.loads(case["jwk"])
        encoded = jwk["x"] if jwk["kty"] == "OKP" else jwk["pub"]
        assert base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)) == raw
        if case["algorithm"] == "ed25519":
            for key in (
                serialization.load_pem_public_key(case["pem"].encode()),
                serialization.load_der_public_key(der),
                serialization.load_ssh_public_key(case["openssh"].encode()),
            ):
                assert key.public_bytes_raw() == raw
            assert base64.b64decode(case["minisign"].splitlines()[1])[10:] == raw


def prehash(cases):
    for case in cases:
        public_key, message, context, signature = (
            bytes.fromhex(case[name]) for name in ("public_key", "message", "context", "signature")
        )
        if case["prehash"] == "blake3":
            digest = blake3(message).digest()
            framed = b"bulla ed25519 blake3\0" + bytes([len(context)]) + context + digest
            verifies = ed25519_verifies(public_key, framed, signature)
        else:
            verifies = ed25519ph_verifies(public_key, message, context, signature)
            assert not ed25519ph_verifies(public_key, message + b"x", context, signature)
        assert verifies, case


def fields(case):
    return [bytes.fromhex(case[name]) for name in ("private_key", "public_key", "message", "signature")]


def ecdsa(cases):
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    for case in cases:
        scalar, public_key, message, signature = fields(case)
        key = ec.derive_private_key(int.from_bytes(scalar, "big"), ec.SECP256R1()).public_key()
        assert compressed(key) == public_key
        r, s = int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big")
        assert len(signature) == 64 and s <= order // 2
        key.verify(encode_dss_signature(r, s), message, ec.ECDSA(hashes.SHA256()))
        try:
            key.verify(encode_dss_signature(r, s), message + b"x", ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            continue
        raise AssertionError("another message verifies")


# How much the orders of P-384 and P-521 are below powers of two.
P384_MISSES = 0x389cb27e0bc8d220a7e5f24db74f58851313e695333ad68d
P521_MISSES = -0x1fdfffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409
HASHES = {"sha2-256": hashes.SHA256, "sha2-384": hashes.SHA384, "sha2-512": hashes.SHA512}


def refused(verify, *values):
    try:
        verify(*values)
    except InvalidSignature:
        return True
    return False


def ecdsa_of_larger_curves(cases):
    curves = {
        "ecdsa-p384": (ec.SECP384R1(), 48, 2**384 - P384_MISSES),
        "ecdsa-p521": (ec.SECP521R1(), 66, 2**521 - P521_MISSES),
    }
    for case in cases:
        scalar, public_key, message, signature = fields(case)
        curve, length, order = curves[case["algorithm"]]
        key = ec.derive_private_key(int.from_bytes(scalar, "big"), curve)
        point = serialization.Encoding.X962, serialization.PublicFormat.UncompressedPoint
        assert key.public_key().public_bytes(*point) == public_key
        assert len(scalar) == length and len(signature) == 2 * length
        r, s = int.from_bytes(signature[:length], "big"), int.from_bytes(signature[length:], "big")
        assert s <= order // 2
        scheme, der = ec.ECDSA(HASHES[case["hash"]]()), encode_dss_signature(r, s)
        key.public_key().verify(der, message, scheme)
        assert refused(key.public_key().verify, der, message + b"x", scheme)


def rsa_private_keys(cases):
    """The private keys, from the RSAPrivateKey of RFC 8017 that a keystore stores."""
    keys = {}
    for case in cases:
        key = serialization.load_der_private_key(bytes.fromhex(case["private_key"]), None)
        form = serialization.Encoding.DER, serialization.PublicFormat.PKCS1
        assert key.public_key().public_bytes(*form).hex() == case["public_key"]
        assert f"rsa-{key.key_size}" == case["algorithm"]
        keys[case["algorithm"]] = key
    return keys


def rsa_signatures(keys, cases):
    for case in cases:
        message, signature = bytes.fromhex(case["message"]), bytes.fromhex(case["signature"])
        hash = HASHES[case["hash"]]()
        scheme = padding.PKCS1v15()
        if case["padding"] == "pss":
            scheme = padding.PSS(padding.MGF1(hash), case["salt_length"])
        verify = keys[case["algorithm"]].public_key().verify
        verify(signature, message, scheme, hash)
        assert refused(verify, signature, message + b"x", scheme, hash)


def rsa_oaep(keys, cases):
    for case in cases:
        key, label = keys[case["algorithm"]], bytes.fromhex(case["label"])
        scheme = lambda label: padding.OAEP(padding.MGF1(hashes.SHA256()), hashes.SHA256(), label)
        ciphertext = bytes.fromhex(case["ciphertext"])
        assert key.decrypt(ciphertext, scheme(label)).hex() == case["plaintext"]
        try:
            key.decrypt(ciphertext, scheme(label + b"x"))
        except ValueError:
            continue
        raise AssertionError("another label decrypts")


def rsa(cases):
    keys = rsa_private_keys(cases["rsa_keys"])
    rsa_signatures(keys, cases["rsa_signatures"])
    rsa_oaep(keys, cases["rsa_oaep"])


def ml_dsa(cases):
    for case in cases:
        seed, public_key, message, signature = fields(case)
        algorithm = ML_DSA[case["algorithm"]]
        assert algorithm.key_derive(seed)[0] == public_key
        assert algorithm.verify(public_key, message, signature)
        assert not algorithm.verify(public_key, message + b"x", signature)


def composite(cases):
    for case in cases:
        seeds, public_key, message, signature = fields(case)
        label = b"COMPSIG-MLDSA65-Ed25519-SHA512"
        signed = b"CompositeAlgorithmSignatures2025" + label + b"\0" + hashlib.sha512(message).digest()
        assert ML_DSA_65.key_derive(seeds[:32])[0] == public_key[:1952]
        assert Ed25519PrivateKey.from_private_bytes(seeds[32:]).public_key().public_bytes_raw() == public_key[1952:]
        assert ML_DSA_65.verify(public_key[:1952], signed, signature[:3309], ctx=label)
        assert ed25519_verifies(public_key[1952:], signed, signature[3309:])


def slh_dsa(cases):
    for case in cases:
        private_key, public_key, message, signature = fields(case)
        assert private_key.endswith(public_key)
        key = SlhDsaPublicKey.from_digest(public_key, SLH_DSA[case["algorithm"]])
        assert key.verify_pure(message, signature)
        assert not key.verify_pure(message + b"x", signature)


def x_wing(seed, ciphertext):
    """draft-connolly-cfrg-xwing-kem: the public key and the shared key."""
    expanded = hashlib.shake_256(seed).digest(96)
    encapsulation, decapsulation = ML_KEM_768.key_derive(expanded[:64])
    private = X25519PrivateKey.from_private_bytes(expanded[64:])
    public = private.public_key().public_bytes_raw()
    first = ML_KEM_768.decaps(decapsulation, ciphertext[:1088])
    second = private.exchange(X25519PublicKey.from_public_bytes(ciphertext[1088:]))
    shared = hashlib.sha3_256(first + second + ciphertext[1088:] + public + b"\\.//^\\").digest()
    return encapsulation + public, shared


def kem(cases):
    for case in cases:
        seed, ciphertext = bytes.fromhex(case["private_key"]), bytes.fromhex(case["ciphertext"])
        if case["algorithm"] == "x-wing":
            public_key, shared = x_wing(seed, ciphertext)
        else:
            algorithm = ML_KEM[case["algorithm"]]
            public_key, private_key = algorithm.key_derive(seed)
            shared = algorithm.decaps(private_key, ciphertext)
        assert public_key.hex() == case["public_key"]
        assert shared.hex() == case["shared_key"]


def h_chacha20(key, nonce):
    """draft-irtf-cfrg-xchacha-03, section 2.2."""
    state = list(struct.unpack("<16I", b"expand 32-byte k" + key + nonce))

    def quarter(a, b, c, d):
        for x, y, z, turn in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            state[x] = (state[x] + state[y]) & 0xFFFFFFFF
            mixed = state[z] ^ state[x]
            state[z] = (mixed << turn | mixed >> (32 - turn)) & 0xFFFFFFFF

    for _ in range(10):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for column in range(4):
            quarter(column, (column + 1) % 4 + 4, (column + 2) % 4 + 8, (column + 3) % 4 + 12)
    return struct.pack("<8I", *state[:4], *state[12:])


def open_envelope(key, envelope):
    assert envelope[:5] == b"BENV\1"
    length = int.from_bytes(envelope[6:8], "big")
    header, nonce, sealed = envelope[: 8 + length], envelope[8 + length : 32 + length], envelope[32 + length :]
    cipher = ChaCha20Poly1305(h_chacha20(key, nonce[:16]))
    secret = cipher.decrypt(bytes(4) + nonce[16:], sealed, header)
    return envelope[5], header[8:].decode(), secret


def envelopes(cases):
    for case in cases:
        key, envelope = bytes.fromhex(case["key"]), bytes.fromhex(case["envelope"])
        assert open_envelope(key, envelope) == (case["kind"], case["subject"], bytes.fromhex(case["secret"]))
        changed = envelope[:5] + bytes([envelope[5] ^ 3]) + envelope[6:]
        try:
            open_envelope(key, changed)
        except InvalidTag:
            continue
        raise AssertionError("an envelope of another kind opened")


def wrapped_key(case):
    lines, last = case["text"].rsplit("wrapped-key: ", 1)
    values = dict(line.split(": ", 1) for line in lines.splitlines()[1:])
    ciphertext = base64.b64decode(values["encapsulated"])
    recipient, shared = x_wing(bytes.fromhex(case["recipient_private_key"]), ciphertext)
    assert values["recipient"] == "x-wing " + blake3(recipient).hexdigest()
    context = "bulla wrapped key v1 wrapping key"
    wrapping = blake3(shared + lines.encode(), derive_key_context=context).digest()
    document = aes_key_unwrap_with_padding(wrapping, base64.b64decode(last))
    key = serialization.load_der_private_key(document, None)
    assert key.private_bytes_raw().hex() == case["private_key"]
    assert base64.b64encode(key.public_key().public_bytes_raw()).decode() == values["public-key"]


def decrypted(case, ciphertext, associated_data):
    """What spec/ciphertext.md says that a ciphertext decrypts to."""
    key, context = bytes.fromhex(case["key"]), bytes.fromhex(case["context"])
    assert ciphertext[0] == 1 and int.from_bytes(ciphertext[1:5], "big") == case["key_version"]
    length = 24 if case["algorithm"] == "xchacha20-poly1305" else 12
    nonce, sealed = ciphertext[5 : 5 + length], ciphertext[5 + length :]
    nonce_key = None
    if case["derivation"] != "none":
        derived = HKDF(hashes.SHA256(), len(key) + 32, None, context).derive(key)
        key, nonce_key = derived[:-32], derived[-32:]
    if case["algorithm"].startswith("aes"):
        cipher, used = AESGCM(key), nonce
    elif length == 24:
        cipher, used = ChaCha20Poly1305(h_chacha20(key, nonce[:16])), bytes(4) + nonce[16:]
    else:
        cipher, used = ChaCha20Poly1305(key), nonce
    plaintext = cipher.decrypt(used, sealed, associated_data)
    if case["derivation"] == "convergent":
        assert hmac.digest(nonce_key, plaintext, "sha256")[:length] == nonce
    return plaintext


def ciphertexts(cases):
    for case in cases:
        ciphertext, data = bytes.fromhex(case["ciphertext"]), bytes.fromhex(case["associated_data"])
        assert decrypted(case, ciphertext, data) == bytes.fromhex(case["plaintext"])
        for changed, other in ((ciphertext[:-1] + bytes([ciphertext[-1] ^ 1]), data), (ciphertext, data + b"x")):
            try:
                decrypted(case, changed, other)
            except InvalidTag:
                continue
            raise AssertionError("a changed ciphertext was decrypted")


def macs(cases):
    for case in cases:
        key, message = bytes.fromhex(case["key"]), bytes.fromhex(case["message"])
        if case["algorithm"] == "blake3":
            made = blake3(message, key=key).digest()
        else:
            made = hmac.digest(key, message, case["algorithm"].removeprefix("hmac-"))
        assert made.hex() == case["mac"]


def protobuf(data):
    """The fields of a message, as pairs of number and value."""

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at, value, shift = at + 1, value | (byte & 0x7F) << shift, shift + 7
            if byte < 0x80:
                return value

    at = 0
    found = []
    while at < len(data):
        tag = varint()
        if tag & 7 == 0:
            found.append((tag >> 3, varint()))
        else:
            assert tag & 7 == 2
            length = varint()
            found.append((tag >> 3, data[at : at + length]))
            at += length
    return found


def holder(block):
    """Whom the first block of a token names, or None. Numbers from 1024 on name the block's own symbols."""
    fields = protobuf(block)
    symbols = [text.decode() for number, text in fields if number == 1]
    named = lambda number: symbols[number - 1024] if number >= 1024 else None
    for predicate in [dict(protobuf(fact))[1] for number, fact in fields if number == 4]:
        parts = dict(protobuf(predicate))
        if named(parts[1]) == "holder":
            return named(dict(protobuf(parts[2]))[3])
    return None


def tokens(cases):
    """The chain of signatures of each token, from the root key on, and its holder."""
    for case in cases["tokens"]:
        token = protobuf(base64.urlsafe_b64decode(case["token"]))
        assert dict(token)[1] == cases["root"]["version"]
        key, previous, ids = bytes.fromhex(cases["root"]["public_key"]), None, []
        for block in [value for number, value in token if number in (2, 3)]:
            signed = dict(protobuf(block))
            next_key = dict(protobuf(signed[2]))
            algorithm = struct.pack("<i", next_key.get(1, 0))
            if signed.get(5, 0) == 0:
                payload = signed[1] + algorithm + next_key[2]
            else:
                payload = b"\0BLOCK\0\0VERSION\0" + struct.pack("<I", signed[5]) + b"\0PAYLOAD\0" + signed[1]
                payload += b"\0ALGORITHM\0" + algorithm + b"\0NEXTKEY\0" + next_key[2]
                payload += b"\0PREVSIG\0" + previous if previous else b""
            assert ed25519_verifies(key, payload, signed[3]), case["name"]
            key, previous = next_key[2], signed[3]
            ids.append(signed[3].hex())
        assert ids == case["revocation_ids"]
        assert holder(dict(protobuf(dict(token)[2]))[1]) == case["holder"]


def main():
    folder = Path(sys.argv[1])
    load = lambda name: json.loads((folder / name).read_text())
    keys, quantum, sealing = load("keys.json"), load("post-quantum.json"), load("sealing.json")
    nist, symmetric = load("nist.json"), load("symmetric.json")
    groups = [
        (key_ids, keys["key_ids"]),
        (public_keys, keys["public_keys"]),
        (prehash, keys["prehash"]),
        (ecdsa, keys["ecdsa"]),
        (ecdsa_of_larger_curves, nist["ecdsa"]),
        (rsa, nist),
        (ml_dsa, quantum["ml_dsa"]),
        (composite, quantum["composite"]),
        (slh_dsa, quantum["slh_dsa"]),
        (kem, quantum["kem"]),
        (envelopes, sealing["envelopes"]),
        (wrapped_key, sealing["wrapped_key"]),
        (ciphertexts, symmetric["ciphertexts"]),
        (macs, symmetric["macs"]),
        (tokens, load("tokens.json")),
    ]
    failed = 0
    for check, cases in groups:
        try:
            check(cases)
            print(f"ok {check.__name__}")
        except (AssertionError, InvalidSignature, InvalidTag, ValueError, KeyError) as error:
            failed += 1
            print(f"FAILED {check.__name__}: {type(error).__name__}: {str(error)[:200]}")
    print(f"{len(groups) - failed} passed; {failed} failed")
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
