#!/usr/bin/env python3
"""Verifies an export of a kms activity log: verify.py EXPORT [HEAD [PUBLIC-KEY]]. docs/activity-export.md says why it is enough.

Needs Python 3.8, and for a HEAD the package `cryptography` (Debian: python3-cryptography). HEAD is the JSON of `kms activity head --json`,
kept since; PUBLIC-KEY the key in it, noted when it was first seen, or SHA-256 in hex of its ML-DSA-65 key. Signatures of that need
`cryptography` 48 with OpenSSL 3.5; with another it says that they were not checked.
Exit codes: 0 valid; 1 not valid; 2 wrong usage; 3 nothing was verified.
"""
import base64, hashlib, json, re, sys

LINE = re.compile(rb'\{"hash":"([A-Za-z0-9_-]{43})",(".*\})', re.DOTALL)
MOST = 64 * 1024 * 1024
SAFE = 2**53 - 1

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
Y8 = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7

def is_sound(point):
    """Of small order are the points whose y is one of these five: with them, or other texts for a point, verifiers differ."""
    y = int.from_bytes(point, "little") & (2**255 - 1)
    return y < P and y not in (0, 1, P - 1, Y8, P - Y8)

def is_signed(key, message, signature):
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    except ImportError:
        end(3, "not verified: the signature of a head needs the Python package `cryptography`, which is not installed")
    if not is_sound(key) or not is_sound(signature[:32]) or int.from_bytes(signature[32:], "little") >= L:
        return False
    try:
        Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    except UnsupportedAlgorithm:
        end(3, "not verified: the Python package `cryptography` that is installed cannot do Ed25519")
    return True

def is_ml_dsa_signed(key, message, signature):
    """None where this Python has no ML-DSA."""
    try:
        from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PublicKey
    except ImportError:
        return None
    try:
        MLDSA65PublicKey.from_public_bytes(key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    except UnsupportedAlgorithm:
        return None
    return True

def end(code, why):
    print(why, file=sys.stderr)
    sys.exit(code)

def bad(seq, why):
    end(1, f"NOT VALID: record {seq} {why}")

def refuse(word):
    raise ValueError(f"{word} is no JSON")

def parsed(text):
    """Every number a double, as JavaScript has it, so that there is one reading of a text."""
    return json.loads(text, parse_int=float, parse_constant=refuse)

def canonical(text, length, decode, encode):
    """The bytes of a text; of all texts that stand for the same bytes one alone is taken."""
    try:
        data = decode(text)
    except ValueError:
        return None
    return data if len(data) == length and encode(data).decode() == text else None

def base64_bytes(text, length):
    return canonical(text, length, base64.b64decode, base64.b64encode)

def hash_bytes(text):
    return canonical(text + "=", 32, base64.urlsafe_b64decode, base64.urlsafe_b64encode)

def read_head(name):
    try:
        with open(name, "rb") as file:
            return head_of(file.read(65537), name)
    except OSError as error:
        end(3, f"not verified: {error}")

def head_of(text, where):
    try:
        head = parsed(text.decode("utf-8-sig", "replace")) if len(text) <= 65536 else None
    except (ValueError, RecursionError):
        head = None
    head = head if isinstance(head, dict) and not any(isinstance(each, (dict, list)) for each in head.values()) else {}
    seq = head.get("seq")
    names = ("format", "tenant", "hash", "signedAt", "publicKey", "signature")
    form, tenant, place, signed_at, key, signature = texts = [head.get(name) for name in names]
    if not (all(type(each) is str for each in texts) and type(seq) is float and seq.is_integer() and 0 <= seq <= SAFE
            and form == "kms-activity-head-1" and re.fullmatch("[!-~]{1,100}", tenant) and hash_bytes(place)
            and (seq > 0 or hash_bytes(place) == bytes(32))
            and re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z", signed_at)
            and (base64_bytes(key, 44) or b"").startswith(bytes.fromhex("302a300506032b6570032100"))
            and base64_bytes(signature, 64)):
        end(1, f"NOT VALID: {where} is no head")
    ml_dsa = head.get("mlDsaPublicKey"), head.get("mlDsaSignature")
    has_ml_dsa = "mlDsaPublicKey" in head or "mlDsaSignature" in head
    if has_ml_dsa and not (type(ml_dsa[0]) is str and type(ml_dsa[1]) is str and base64_bytes(ml_dsa[1], 3309)
            and (base64_bytes(ml_dsa[0], 1974) or b"").startswith(bytes.fromhex("308207b2300b0609608648016503040312038207a100"))):
        end(1, f"NOT VALID: {where} is no head")
    seq = int(seq)
    message = f"{form}\n{tenant}\n{seq}\n{place}\n{signed_at}\n".encode()
    if not is_signed(base64_bytes(key, 44)[12:], message, base64_bytes(signature, 64)):
        bad(seq, "has a forged head")
    checked = digest = None
    if has_ml_dsa:
        spki = base64_bytes(ml_dsa[0], 1974)
        checked, digest = is_ml_dsa_signed(spki[22:], message, base64_bytes(ml_dsa[1], 3309)), hashlib.sha256(spki).hexdigest()
        if checked is False:
            bad(seq, "has a forged head")
    return {**head, "seq": seq, "checked": checked, "sha256": digest}

def need_key(head, expected):
    if expected is None or expected == head["publicKey"]:
        return
    if expected != head["sha256"]:
        bad(head["seq"], f"has a head of another key, {head['publicKey']}")
    if not head["checked"]:
        end(3, "not verified: this Python cannot check the ML-DSA-65 signature of a head")

def read_lead(line, export, head, public_key):
    """Before the first line, where retention dropped what was before it: the head of the last record that was dropped."""
    lead = head_of(line, f"the first line of {export}")
    # A later head vouches for it by the hashes between them.
    if head is None or head["seq"] < lead["seq"]:
        need_key(lead, public_key)
    if head and head["tenant"] != lead["tenant"]:
        bad(lead["seq"], "is of another tenant than the head")
    if head and head["seq"] == lead["seq"] and head["hash"] != lead["hash"]:
        bad(lead["seq"], "is not the one that was anchored")
    return lead

def is_deep(value, left=64):
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return left < 0 or any(is_deep(each, left - 1) for each in inside)

def read_place(match):
    """The sequence number of a line; None where it is no record."""
    try:
        record = parsed((b"{" + match[2]).decode("utf-8"))
    except (TypeError, ValueError, RecursionError):
        return None
    seq = record.get("seq")
    return int(seq) if type(seq) is float and seq.is_integer() and abs(seq) <= SAFE and not is_deep(record) else None

def lines_of(name):
    try:
        with open(name, "rb") as file:
            while line := file.readline(MOST + 2):
                yield line[:-1] if line.endswith(b"\n") else line
    except OSError as error:
        end(3, f"not verified: {error}")

def main(export, head_file=None, public_key=None):
    head = None if head_file is None else read_head(head_file)
    if head:
        need_key(head, public_key)
    seq, digest = 0, bytes(32)
    is_first, lead = True, None
    for line in lines_of(export):
        begins, is_first = is_first, False
        if begins and line.startswith(b'{"format":'):
            lead = read_lead(line, export, head, public_key)
            seq, digest = lead["seq"], hash_bytes(lead["hash"])
            continue
        match = LINE.fullmatch(line)
        place = read_place(match) if len(line) <= MOST else None
        if begins and head and place == head["seq"] + 1:
            seq, digest = head["seq"], hash_bytes(head["hash"])
        seq += 1
        if place != seq:
            bad(seq, "is missing, moved or not readable")
        digest = hashlib.sha256(digest + b"{" + match[2]).digest()
        text = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if text.encode() != match[1]:
            bad(seq, "was changed")
        if head and seq == head["seq"] and text != head["hash"]:
            bad(seq, "is not the one that was anchored")
    if head and seq < head["seq"]:
        bad(head["seq"], "was anchored and is missing at the end")
    if seq == 0 and not lead:
        bad(1, "is missing, as are all others")
    print(f"valid up to record {seq}")
    if lead:
        print(f"records up to {lead['seq']} were dropped by retention; key: {lead['publicKey']}")
    if lead and head and head["seq"] < lead["seq"]:
        print(f"record {head['seq']}, anchored at {head['signedAt']}, is one of them")
    elif head:
        print(f"record {head['seq']}, anchored at {head['signedAt']}, is still there; key: {head['publicKey']}")
        if head["checked"]:
            print(f"signed with ML-DSA-65, too; SHA-256 of the key: {head['sha256']}")
        elif head["sha256"]:
            print("its ML-DSA-65 signature was not checked: this Python cannot")

if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        end(2, "usage: python3 verify.py EXPORT [HEAD [PUBLIC-KEY]]")
    main(*sys.argv[1:])
