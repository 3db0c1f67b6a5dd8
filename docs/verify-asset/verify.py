#!/usr/bin/env python3
"""Verifies the asset that a header carries: verify.py HEADER ASSET KEYS, with Python 3.8 and its package `cryptography`. All three are files:
the header's text, the asset's JSON (id, parents, data), and what `kms asset signing-keys --json` prints. Exit codes: 0 valid; 1 not valid;
2 wrong usage; 3 nothing was verified. What is signed: docs/formats.md."""
import base64, decimal, json, re, sys

def check(key, message, signature):
    """Of small order are the points whose y is one of five: with them, or other texts for a point, verifiers differ."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    p, y8 = 2**255 - 19, 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7
    for point in (key, signature[:32]):
        y = int.from_bytes(point, "little") & (2**255 - 1)
        if y >= p or y in (0, 1, p - 1, y8, p - y8):
            raise ValueError("a point is not sound")
    Ed25519PublicKey.from_public_bytes(key).verify(signature, message)

def number(value):  # as JavaScript writes it: Python finds the same shortest digits, and sets them otherwise
    sign, digits, exponent = decimal.Decimal(repr(value or 0.0)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + exponent
    if -6 < point <= 0:
        text, point = "0" * (1 - point) + text, 1
    if 0 < point <= 21:
        return "-" * sign + (text[:point].ljust(point, "0") + "." + text[point:]).rstrip(".")
    return "-" * sign + (text[0] + "." + text[1:]).rstrip(".") + "e%+d" % (point - 1)

def canonical(value, left=64):  # RFC 8785: names sorted by UTF-16 code units; no encoding has lone surrogates
    if left < 0 or value in (float("inf"), float("-inf")):
        raise ValueError("the asset is nothing that is signed")
    if isinstance(value, dict):
        names = sorted(value, key=lambda name: name.encode("utf-16-be"))
        return "{" + ",".join(canonical(name) + ":" + canonical(value[name], left - 1) for name in names) + "}"
    if isinstance(value, list):
        return "[" + ",".join(canonical(each, left - 1) for each in value) + "]"
    return number(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)

def main(*files):
    header_text, *others = [open(name, "rb").read().decode("utf-8-sig") for name in files]
    asset, keys = (json.loads(text, parse_int=float, parse_constant=int) for text in others)
    match = re.fullmatch("[ \t\r\n]*(AQ[EMc]B[A-Za-z0-9_-]{248})[ \t\r\n]*", header_text)
    if not match: raise ValueError("the header is none of format 1 with an asset")
    header = base64.urlsafe_b64decode(match[1])  # format 1, with an asset, and a hash of format 1
    epoch, version, ulid = (int.from_bytes(header[at:end], "big") for at, end in ((3, 5), (105, 109), (89, 105)))
    id = "asset_" + "".join("0123456789abcdefghjkmnpqrstvwxyz"[ulid >> 5 * at & 31] for at in range(25, -1, -1))
    if asset["id"] != id:
        raise ValueError(f"the header carries {id}")
    key = base64.b64decode([each["publicKey"] for each in keys["keys"] if each["epoch"] == epoch][0])
    if len(key) != 44 or key[:12].hex() != "302a300506032b6570032100":
        raise ValueError(f"the key of epoch {epoch} is none of Ed25519")
    parents, data, hash = asset.get("parents", []), asset.get("data"), base64.urlsafe_b64encode(header[2:77]).decode()
    signed = {"id": id, "version": float(version), "parents": parents, "data": data, "hash": hash}
    check(key[12:], canonical(signed).encode(), header[109:173])
    print(f"valid: {id}, version {version}, signed with the key of epoch {epoch}")

if __name__ == "__main__":
    try:
        code, why = (2, "usage: verify.py HEADER ASSET KEYS") if len(sys.argv) != 4 else (0, main(*sys.argv[1:]))
    except Exception as error:
        code, why = (3, f"not verified: {error}") if isinstance(error, (OSError, ImportError)) else (1, f"NOT VALID: {error!r}")
    sys.exit(code if code == 0 else print(why, file=sys.stderr) or code)
