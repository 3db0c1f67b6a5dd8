#!/usr/bin/env python3
"""Verifies an export of a kms activity log, and the approvals in it: verify.py EXPORT [HEAD [PUBLIC-KEY]]. docs/activity-export.md says
why it is enough.

Needs Python 3.8, and for a HEAD or a passkey the package `cryptography` (Debian: python3-cryptography). HEAD is the JSON of `kms activity head --json`,
kept since; PUBLIC-KEY the key in it, noted when it was first seen, or SHA-256 in hex of its ML-DSA-65 key. Signatures of that need
`cryptography` 48 with OpenSSL 3.5; with another it says that they were not checked.
Exit codes: 0 valid; 1 not valid; 2 wrong usage; 3 nothing was verified.
"""
import base64, hashlib, json, re, sys

LINE = re.compile(rb'\{"hash":"([A-Za-z0-9_-]{43})",(".*\})', re.DOTALL)
MOST = 64 * 1024 * 1024
SAFE = 2**53 - 1
# In milliseconds: a request waits for a day, and some time may lie between a decision and its record.
DAY, SPARE = 86_400_000, 60_000

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

def read_record(match):
    """The record of a line, and its sequence number; None twice where it is no record."""
    try:
        record = parsed((b"{" + match[2]).decode("utf-8"))
    except (TypeError, ValueError, RecursionError):
        return None, None
    seq = record.get("seq")
    is_record = type(seq) is float and seq.is_integer() and abs(seq) <= SAFE and not is_deep(record)
    return (record, int(seq)) if is_record else (None, None)

def is_word(value):
    return type(value) is str and re.fullmatch("[!-~]{1,256}", value) is not None

def is_same(one, other):
    return type(one) is type(other) and one == other

def base64url_bytes(text):
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except ValueError:
        return None
    return data if base64.urlsafe_b64encode(data).decode().rstrip("=") == text else None

def base64url(data):
    return base64.urlsafe_b64encode(data).decode().rstrip("=")

def object_in(text):
    """Of a text that is no deeper than any parser goes."""
    try:
        value = parsed(text) if text.count("[") + text.count("{") <= 500 else None
    except (ValueError, RecursionError):
        return None
    return value if type(value) is dict else None

def field(value, name):
    return value.get(name) if type(value) is dict else None

class Cose:
    """A public key: a map of integers to integers or byte strings, in CBOR."""
    def __init__(self, data):
        self.data, self.at, self.fields = data, 0, {}
        major, count = self.head()
        for _ in range(count or 0):
            label, value = self.item(), self.item()
            if type(label) is not int or value is None or label in self.fields:
                major = None
                break
            self.fields[label] = value
        if major != 5 or self.at != len(data):
            self.fields = {}

    def head(self):
        first = self.data[self.at] if self.at < len(self.data) else None
        self.at += 1
        short = (first or 0) & 31
        length = {24: 1, 25: 2}.get(short, 0)
        if first is None or (short > 23 and length == 0) or self.at + length > len(self.data):
            return None, None
        self.at += length
        return first >> 5, int.from_bytes(self.data[self.at - length:self.at], "big") if length else short

    def item(self):
        major, argument = self.head()
        if major == 0:
            return argument
        if major == 1:
            return -1 - argument
        if major != 2 or self.at + argument > len(self.data):
            return None
        self.at += argument
        return self.data[self.at - argument:self.at]

def is_cose_signed(key, message, signature):
    """Whether a COSE key signed the message: ES256, EdDSA or RS256."""
    try:
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    except ImportError:
        end(3, "not verified: the signature of a passkey needs the Python package `cryptography`, which is not installed")
    fields = Cose(key).fields
    kind, (a, b, c) = (fields.get(1), fields.get(3)), [fields.get(label) for label in (-1, -2, -3)]
    is_bytes = [type(each) is bytes for each in (a, b, c)]
    try:
        if kind == (2, -7) and a == 1 and is_bytes[1] and is_bytes[2] and len(b) == len(c) == 32:
            numbers = ec.EllipticCurvePublicNumbers(int.from_bytes(b, "big"), int.from_bytes(c, "big"), ec.SECP256R1())
            numbers.public_key().verify(signature, message, ec.ECDSA(hashes.SHA256()))
            return True
        if kind == (1, -8) and a == 6 and is_bytes[1] and len(b) == 32 and len(signature) == 64:
            return is_signed(b, message, signature)
        if kind == (3, -257) and is_bytes[0] and is_bytes[1] and len(a) in (256, 384, 512) and len(signature) == len(a):
            n, e = int.from_bytes(a, "big"), int.from_bytes(b, "big")
            if a[0] < 128 or n % 2 == 0 or not 65537 <= e < 2**31 or e % 2 == 0:
                return False
            rsa.RSAPublicNumbers(e, n).public_key().verify(signature, message, padding.PKCS1v15(), hashes.SHA256())
            return True
    except (InvalidSignature, ValueError):
        pass
    return False

def is_asserted(assertion, challenge):
    """Whether the passkey signed the challenge, at the page of its host, with its user verified."""
    names = ("clientDataJSON", "authenticatorData", "signature", "publicKey")
    client, data, signature, key = parts = [base64url_bytes(assertion[name]) for name in names]
    host = re.fullmatch(r"https?://([a-z0-9.-]{1,253})(?::[0-9]{1,5})?", assertion["origin"])
    rp = assertion["rpId"]
    if not all(parts) or not host or rp == "" or not (host[1] == rp or host[1].endswith("." + rp)):
        return False
    try:
        said = object_in(client.decode("utf-8"))
    except ValueError:
        return False
    told = [field(said, name) for name in ("type", "challenge", "origin")]
    if told != ["webauthn.get", challenge, assertion["origin"]]:
        return False
    if len(data) < 37 or data[:32] != hashlib.sha256(rp.encode()).digest() or data[32] & 5 != 5:
        return False
    return is_cose_signed(key, data + hashlib.sha256(client).digest(), signature)

def factor_of(factor):
    name = field(factor, "id")
    return name if is_word(name) and field(factor, "kind") in ("totp", "passkey") else None

def challenge_of(verdict, digest):
    """What a passkey signs: something else for each verdict."""
    if verdict == "approve":
        return digest
    text = json.dumps({"digest": digest, "v": "kms/approval-word/1", "verdict": verdict}, separators=(",", ":"))
    return base64url(hashlib.sha256(text.encode()).digest())

def is_count(value):
    return type(value) is float and value.is_integer() and value >= 1

def is_window(value):
    return is_same(value, "once") or (type(value) is float and value > 0)

def is_stated_rule(rule):
    is_rule = is_word(field(rule, "id")) and is_count(field(rule, "count")) and is_window(field(rule, "window"))
    return is_rule and "expires" in rule and (rule["expires"] is None or type(rule["expires"]) is float)

def are_further(acts):
    """Acts on further things, in a statement or the record of an act."""
    if type(acts) is not list or not all(type(act) is dict and type(act.get("action")) is str for act in acts):
        return False
    return all("object" in act and (act["object"] is None or is_word(act["object"])) for act in acts)

def is_same_further(stated, done):
    names = [[(act["action"], act["object"]) for act in acts] for acts in (stated, done) if are_further(acts)]
    return len(names) == 2 and names[0] == names[1]

def holds_at(rule, at):
    return type(rule["expires"]) is not float or at < rule["expires"]

def has_rule(rules, name):
    return type(rules) is list and any(is_same(field(rule, "id"), name) for rule in rules)

def is_done_under(name, approval):
    approval = approval if type(approval) is dict else {}
    is_counted = approval.get("broken") is True or has_rule(approval.get("rules"), name)
    return "glass" in approval or ("use" in approval and is_counted)

def is_over_at(request, at):
    """A request ends when somebody ends it, and after a day without the words that it needs."""
    return request["is_over"] or at > request["at"] + DAY + SPARE

class Approvals:
    """What the appliance's own records say of approvals must fit together."""
    fields = "credentialId", "publicKey", "rpId", "origin", "clientDataJSON", "authenticatorData", "signature"
    often = "was done more often, or later, than was approved"
    unlike = "counts words for another rule than there was"

    def __init__(self, tenant):
        self.tenant, self.before, self.is_whole = tenant, 0, True
        self.requests, self.rules, self.keys, self.owners, self.glasses = {}, {}, {}, {}, set()
        self.done, self.broken, self.acts, self.unchecked = [], [], 0, 0

    def see(self, seq, record):
        action, props = record.get("action"), record.get("props")
        texts = type(action) is str and type(record.get("keyid")) is str
        if "reporter" in record or type(props) is not dict or not texts or type(record.get("createdAt")) is not float:
            return
        is_done = record.get("validAction") is True and type(record.get("status")) is float and record["status"] < 400
        if not is_done and action != "approval.request":
            return
        said = props.get("approval")
        if action == "approval.rule":
            self.act(seq, record, said if type(said) is dict else {})
            self.change_rule(seq, record["createdAt"], props)
        elif type(said) is not dict:
            return
        elif action == "approval.request":
            self.ask(seq, record, said)
        elif action in ("approval.approve", "approval.deny"):
            self.give(seq, record, said)
        elif action in ("approval.withdraw", "approval.expire"):
            request = self.request_of(seq, said, "ends no request")
            if request:
                request["is_over"] = True
        elif action == "approval.break-glass":
            self.break_glass(seq, record, said)
        else:
            self.act(seq, record, said)

    def change_rule(self, seq, at, props):
        """A rule that holds was changed with the words that it asks for itself."""
        name, rule = field(props.get("object"), "id"), props.get("rule")
        if type(name) is not str:
            return
        before = self.rules.get(name)
        if before and holds_at(before, at) and not is_done_under(name, props.get("approval")):
            bad(seq, "changes a rule without the words that it asks for")
        if type(rule) is not dict:
            self.rules.pop(name, None)
            return
        users = field(rule.get("approvers"), "users")
        # Not None: a rule without this field is not one that never expires.
        terms = {"count": rule.get("count"), "window": rule.get("window"), "expires": rule.get("expires", "")}
        self.rules[name] = {**terms, "users": users if type(users) is list else None}

    def known_rule(self, seq, rule):
        """A rule that a statement names, as it is known."""
        name, terms = rule["id"], {each: rule[each] for each in ("count", "window", "expires")}
        known = self.rules.get(name)
        if known is None and not self.is_whole:
            # Made before the export begins.
            known = self.rules[name] = {**terms, "users": None}
        if known is None or not all(is_same(known[each], terms[each]) for each in terms):
            bad(seq, "asks for words by another rule than there was")
        return known

    def ask(self, seq, record, said):
        name, statement, digest = said.get("id"), said.get("statement"), said.get("digest")
        stated = None
        if is_word(name) and type(statement) is str and is_word(digest):
            try:
                stated = object_in(statement) if base64url(hashlib.sha256(statement.encode()).digest()) == digest else None
            except UnicodeEncodeError:
                pass
        stated = stated or {}
        thing = stated.get("object", "")
        has_thing = thing is None or (is_word(field(thing, "id")) and is_word(field(thing, "type")))
        rules = stated.get("rules")
        has_rules = type(rules) is list and len(rules) > 0 and all(is_stated_rule(rule) for rule in rules)
        has_rules = has_rules and len({rule["id"] for rule in rules}) == len(rules) and type(stated.get("at")) is float
        is_own = stated.get("request") == name == field(record["props"].get("object"), "id") and stated.get("requester") == record["keyid"]
        if not (stated.get("v") == "kms/approval/1" and is_own and is_word(stated.get("tenant")) and is_word(stated.get("recorded"))
                and type(stated.get("ring")) is str and has_thing and are_further(stated.get("further")) and has_rules):
            bad(seq, "has a statement that does not fit its digest or its record")
        self.tenant = self.tenant or stated["tenant"]
        if stated["tenant"] != self.tenant:
            bad(seq, "has a statement of another tenant")
        if name in self.requests:
            bad(seq, "asks for approval under an id that is taken")
        asked = {rule["id"]: self.known_rule(seq, rule) for rule in rules}
        names = "requester", "recorded", "ring", "object", "further", "rules", "at"
        begun = {"asked": asked, "words": {}, "is_over": False, "uses": 0}
        self.requests[name] = {**{each: stated[each] for each in names}, "digest": digest, **begun}

    def request_of(self, seq, said, why):
        """None where it was made before the export begins."""
        name = said.get("id")
        request = self.requests.get(name) if type(name) is str else None
        if not request and (self.is_whole or type(name) is not str):
            bad(seq, why)
        return request

    def give(self, seq, record, said):
        request = self.request_of(seq, said, "gives a word on no request")
        user, digest = record["keyid"], said.get("digest")
        if not is_word(digest) or (request and digest != request["digest"]):
            bad(seq, "gives a word on another digest than that of the request")
        verdict = "approve" if record["action"] == "approval.approve" else "deny"
        if said.get("verdict") != verdict:
            bad(seq, "gives another word than its action says")
        signed = self.need_factor(seq, user, said, challenge_of(verdict, digest))
        if not request:
            return
        if user == request["requester"]:
            bad(seq, "gives a word of who asked")
        if is_over_at(request, record["createdAt"]):
            bad(seq, "gives a word on a request that was over")
        if user in request["words"]:
            bad(seq, "gives a second word of one user")
        request["words"][user] = {"seq": seq, "at": record["createdAt"], "approves": verdict == "approve", "signed": signed}
        request["is_over"] = verdict == "deny"

    def need_factor(self, seq, user, said, challenge):
        """The assertion, where there is one. Each factor, key and credential belongs to one user, and each passkey has one key."""
        factor, assertion = said.get("factor"), said.get("assertion")
        name = factor_of(factor)
        if name is None:
            bad(seq, "gives a word without a second factor")
        marks = ["factor " + name]
        if "assertion" in said:
            is_fit = factor["kind"] == "passkey" and all(type(field(assertion, each)) is str for each in self.fields)
            is_one = is_fit and self.keys.setdefault(name, assertion["publicKey"]) == assertion["publicKey"]
            if not is_one or (challenge is not None and not is_asserted(assertion, challenge)):
                bad(seq, "has an assertion that does not verify")
            marks += ["key " + assertion["publicKey"], "credential " + assertion["credentialId"]]
        if any(self.owners.setdefault(mark, user) != user for mark in marks):
            bad(seq, "gives a word with the second factor of another user")
        return assertion

    def break_glass(self, seq, record, said):
        glass = said.get("glass")
        if not is_word(glass) or glass in self.glasses:
            bad(seq, "breaks the glass under an id that is taken")
        self.glasses.add(glass)
        if "id" not in said:
            return
        request = self.request_of(seq, said, "breaks the glass for no request")
        self.need_factor(seq, record["keyid"], said, request and challenge_of("break-glass", request["digest"]))
        if not request:
            return
        if is_over_at(request, record["createdAt"]):
            bad(seq, "breaks the glass for a request that was over")
        request["glass"] = {"id": glass, "at": record["createdAt"]}

    def act(self, seq, record, said):
        if "glass" in said:
            if not is_word(said["glass"]):
                bad(seq, "was done by broken glass that no record tells of")
            self.broken.append((seq, record["action"], record["keyid"], said["glass"]))
        if "glass" in said or "use" not in said:
            return
        self.acts += 1
        request = self.request_of(seq, said, "was done without a request")
        if not request:
            self.unchecked += 1
            return
        if said.get("digest") != request["digest"]:
            bad(seq, "was done over another digest than that of the request")
        asked, thing = request["object"], record["props"].get("object")
        is_same_thing = asked is None or asked["type"] != field(thing, "type") or asked["id"] == field(thing, "id")
        told = [record["keyid"], record["action"], record.get("ringname")]
        is_same_thing = is_same_thing and is_same_further(request["further"], said.get("further", []))
        if told != [request["requester"], request["recorded"], request["ring"]] or not is_same_thing:
            bad(seq, "is not what was approved")
        if request["is_over"]:
            bad(seq, "was done after the request was over")
        if not is_same(said["use"], float(request["uses"] + 1)):
            bad(seq, self.often)
        if said.get("broken") is True:
            if "glass" not in request:
                bad(seq, "was done by broken glass that no record tells of")
            glass = request["glass"]
            if request["uses"] > 0 or record["createdAt"] > glass["at"] + DAY + SPARE:
                bad(seq, self.often)
            request["uses"] += 1
            self.acts -= 1
            self.broken.append((seq, record["action"], record["keyid"], glass["id"]))
            return
        rules = said.get("rules")
        if type(rules) is not list or not rules:
            bad(seq, "was done by no rule")
        granted_at = max([self.completed_at(seq, rule, request) for rule in rules])
        # A window is never wider than those that approvers signed.
        windows = [rule["window"] for rule in rules + request["rules"]]
        if "once" in windows and request["uses"] > 0:
            bad(seq, self.often)
        lasts = min(DAY if window == "once" else window * 1000 for window in windows)
        if record["createdAt"] > granted_at + lasts + SPARE:
            bad(seq, self.often)
        for name, known in request["asked"].items():
            if self.rules.get(name) is known and holds_at(known, record["createdAt"]) and not has_rule(rules, name):
                bad(seq, "counts no words for a rule of its statement")
        request["uses"] += 1
        if request["uses"] == 1:
            words = {user: request["words"][user] for rule in rules for user in rule["words"]}
            self.done.append((seq, record["action"], record["keyid"], said["id"], words))

    def completed_at(self, seq, rule, request):
        """When the word came that completed the count of a rule."""
        name, count, window, users = [field(rule, each) for each in ("id", "count", "window", "words")]
        is_rule = is_word(name) and is_window(window) and is_count(count) and type(users) is list
        if not is_rule or not all(type(user) is str for user in users):
            bad(seq, self.unlike)
        known = self.rules.get(name)
        if known is None and self.is_whole:
            bad(seq, self.unlike)
        if known and not (is_same(known["count"], count) and is_same(known["window"], window)
                and (known["users"] is None or all(user in known["users"] for user in users))):
            bad(seq, self.unlike)
        if request["requester"] in users:
            bad(seq, "counts the word of who asked")
        given = [request["words"].get(user) for user in users]
        if not all(word and word["approves"] for word in given):
            bad(seq, "counts a word that was not given before")
        if len(set(users)) < len(users):
            bad(seq, "counts one word twice")
        if len(given) < count:
            bad(seq, "was done with fewer words than it needs")
        return sorted(given, key=lambda word: word["seq"])[int(count) - 1]["at"]

    def end(self):
        for seq, _, _, glass in self.broken:
            # The breaking is recorded right before its act: the first record of a later part may be without.
            is_cut = not self.is_whole and seq == self.before + 1
            if glass not in self.glasses and not is_cut:
                bad(seq, "was done by broken glass that no record tells of")

    def print(self):
        if self.acts:
            print(f"done with approval: {self.acts}")
        for seq, action, keyid, name, words in self.done:
            print(f"record {seq}: {shown(action)} by {shown(keyid)}, approved as {shown(name)}")
            for user, word in words.items():
                key = word["signed"] and hashlib.sha256(base64url_bytes(word["signed"]["publicKey"])).hexdigest()
                proof = f"signed by the passkey {key}" if key else "the word of the appliance only"
                print(f"  by {shown(user)} in record {word['seq']}: {proof}")
        if self.unchecked:
            print(f"{self.unchecked} of them were asked for before this export begins, and were not checked")
        for seq, action, keyid, glass in self.broken:
            print(f"record {seq}: {shown(action)} by {shown(keyid)}, WITHOUT APPROVAL, by broken glass {glass}")

def shown(text):
    return text if is_word(text) else re.sub("[^ -~]", "?", json.dumps(text, ensure_ascii=False))

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
    approvals = Approvals(head and head["tenant"])
    for line in lines_of(export):
        begins, is_first = is_first, False
        if begins and line.startswith(b'{"format":'):
            lead = read_lead(line, export, head, public_key)
            seq, digest = lead["seq"], hash_bytes(lead["hash"])
            approvals.tenant, approvals.before, approvals.is_whole = lead["tenant"], seq, seq == 0
            continue
        match = LINE.fullmatch(line)
        record, place = read_record(match) if len(line) <= MOST else (None, None)
        if begins and head and place == head["seq"] + 1:
            seq, digest = head["seq"], hash_bytes(head["hash"])
            approvals.before, approvals.is_whole = seq, seq == 0
        seq += 1
        if place != seq:
            bad(seq, "is missing, moved or not readable")
        digest = hashlib.sha256(digest + b"{" + match[2]).digest()
        text = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        if text.encode() != match[1]:
            bad(seq, "was changed")
        if head and seq == head["seq"] and text != head["hash"]:
            bad(seq, "is not the one that was anchored")
        if b'"approval' in match[2]:
            approvals.see(seq, record)
    if head and seq < head["seq"]:
        bad(head["seq"], "was anchored and is missing at the end")
    if seq == 0 and not lead:
        bad(1, "is missing, as are all others")
    approvals.end()
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
    approvals.print()

if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        end(2, "usage: python3 verify.py EXPORT [HEAD [PUBLIC-KEY]]")
    main(*sys.argv[1:])
