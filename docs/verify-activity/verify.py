#!/usr/bin/env python3
"""Verifies an export of a kms activity log: verify.py EXPORT [HEAD]. Needs Python 3 alone; docs/activity-export.md says why it is enough.

HEAD is the JSON of `kms activity head --json`, kept since; its signature is checked with OpenSSL, as that page shows.
"""
import base64, hashlib, json, re, sys

LINE = re.compile(rb'\{"hash":"([A-Za-z0-9_-]{43})",(".*\})', re.DOTALL)

def bad(seq, why):
    sys.exit(f"NOT VALID: record {seq} {why}")

def main(export, head_file=None):
    head = json.load(open(head_file)) if head_file else None
    seq, digest = 0, bytes(32)
    with open(export, "rb") as lines:
        for line in lines:
            match = LINE.fullmatch(line.rstrip(b"\n"))
            try:
                place = match and json.loads(b"{" + match[2])["seq"]
            except (ValueError, KeyError):
                place = None
            if seq == 0 and head and place == head["seq"] + 1:
                seq, digest = head["seq"], base64.urlsafe_b64decode(head["hash"] + "=")
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
    print(f"valid up to record {seq}")

main(*sys.argv[1:])
