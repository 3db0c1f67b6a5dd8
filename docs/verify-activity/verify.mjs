// Verifies an export of a kms activity log, and the approvals in it: node verify.mjs EXPORT [HEAD [PUBLIC-KEY]]. Needs Node 20 alone;
// docs/activity-export.md says why it is enough. HEAD is the JSON of `kms activity head --json`, kept since; PUBLIC-KEY the key in it, noted when it was first seen, or
// SHA-256 in hex of its ML-DSA-65 key. Signatures of that need Node 24.6; with another it says that they were not checked.
// Exit codes: 0 valid; 1 not valid; 2 wrong usage; 3 nothing was verified.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';

const MOST = 64 * 1024 * 1024;
const ZERO = Buffer.alloc(32);
// In milliseconds: a request waits for a day, and some time may lie between a decision and its record.
const DAY = 86_400_000;
const SPARE = 60_000;

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;
const Y8 = 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n;

function number(bytes) {
  return BigInt(`0x${Buffer.from(bytes).reverse().toString('hex')}`);
}

// Of small order are the points whose y is one of these five: with them, or other texts for a point, verifiers differ.
function isSound(point) {
  const y = number(point) & (2n ** 255n - 1n);
  return y < P && ![0n, 1n, P - 1n, Y8, P - Y8].includes(y);
}

function isSigned(spki, message, signature) {
  if (!isSound(spki.subarray(12)) || !isSound(signature.subarray(0, 32)) || number(signature.subarray(32)) >= L)
    return false;
  try {
    return verify(null, message, createPublicKey({ key: spki, format: 'der', type: 'spki' }), signature);
  } catch {
    return false;
  }
}

// undefined where this Node has no ML-DSA.
function isMlDsaSigned(spki, message, signature) {
  try {
    return verify(null, message, createPublicKey({ key: spki, format: 'der', type: 'spki' }), signature);
  } catch {
    return undefined;
  }
}

function bytes(text, encoding, length) {
  const decoded = Buffer.from(String(text), encoding);
  return decoded.length === length && decoded.toString(encoding) === text ? decoded : undefined;
}

function end(code, why) {
  console.error(why);
  process.exit(code);
}

function bad(seq, why) {
  end(1, `NOT VALID: record ${seq} ${why}`);
}

function readHead(file) {
  try {
    return headOf(readFileSync(file), file);
  } catch (error) {
    return end(3, `not verified: ${error.message}`);
  }
}

function headOf(text, where) {
  let head;
  try {
    head = text.length <= 65536 && JSON.parse(text.toString().replace(/^\ufeff/, ''));
  } catch {}
  const { format, tenant, seq, hash, signedAt, publicKey, signature, mlDsaPublicKey, mlDsaSignature } = head || {};
  const spki = bytes(publicKey, 'base64', 44);
  const isFlat = head && Object.values(head).every((each) => typeof each !== 'object' || each === null);
  const hasMlDsa = mlDsaPublicKey !== undefined || mlDsaSignature !== undefined;
  const mlDsaSpki = bytes(mlDsaPublicKey, 'base64', 1974);
  const isMlDsa =
    [mlDsaPublicKey, mlDsaSignature].every((each) => typeof each === 'string') &&
    mlDsaSpki?.toString('hex').startsWith('308207b2300b0609608648016503040312038207a100') &&
    bytes(mlDsaSignature, 'base64', 3309);
  const texts = [format, tenant, hash, signedAt, publicKey, signature].every((each) => typeof each === 'string');
  if (
    !isFlat ||
    !texts ||
    format !== 'kms-activity-head-1' ||
    !/^[!-~]{1,100}$/.test(tenant) ||
    !Number.isSafeInteger(seq) ||
    seq < 0 ||
    !bytes(hash, 'base64url', 32) ||
    (seq === 0 && hash !== ZERO.toString('base64url')) ||
    !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(signedAt) ||
    !spki?.toString('hex').startsWith('302a300506032b6570032100') ||
    !bytes(signature, 'base64', 64) ||
    (hasMlDsa && !isMlDsa)
  )
    end(1, `NOT VALID: ${where} is no head`);
  const message = Buffer.from(`${format}\n${tenant}\n${seq}\n${hash}\n${signedAt}\n`);
  if (!isSigned(spki, message, Buffer.from(signature, 'base64'))) bad(seq, 'has a forged head');
  if (!hasMlDsa) return { ...head, mlDsa: undefined };
  const isChecked = isMlDsaSigned(mlDsaSpki, message, Buffer.from(mlDsaSignature, 'base64'));
  if (isChecked === false) bad(seq, 'has a forged head');
  return { ...head, mlDsa: { isChecked, sha256: createHash('sha256').update(mlDsaSpki).digest('hex') } };
}

function needKey({ seq, publicKey, mlDsa }, expected) {
  if (expected === undefined || expected === publicKey) return;
  if (expected !== mlDsa?.sha256) bad(seq, `has a head of another key, ${publicKey}`);
  if (!mlDsa.isChecked) end(3, 'not verified: this Node cannot check the ML-DSA-65 signature of a head');
}

function isDeep(value, left = 64) {
  if (left < 0) return true;
  return typeof value === 'object' && value !== null && Object.values(value).some((each) => isDeep(each, left - 1));
}

function parse(line) {
  const match = /^\{"hash":"([\w-]{43})",(".*\})$/s.exec(line.toString('latin1'));
  try {
    const text = Buffer.from(`{${match[2]}`, 'latin1');
    const record = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(text));
    return Number.isSafeInteger(record.seq) && !isDeep(record) && { hash: match[1], text, seq: record.seq, record };
  } catch {
    return false;
  }
}

// Approvals: what the appliance's own records say of them must fit together.
const requests = new Map();
const rules = new Map();
const keys = new Map();
const owners = new Map();
const glasses = new Set();
const done = [];
const broken = [];
// Number of the record before the export's first one.
let before = 0;
let isWhole = true;
let tenant;
let acts = 0;
let unchecked = 0;

function isObject(value) {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isWord(value) {
  return typeof value === 'string' && /^[!-~]{1,256}$/.test(value);
}

function unbase64url(text) {
  const decoded = Buffer.from(String(text), 'base64url');
  return decoded.toString('base64url') === text ? decoded : undefined;
}

function sha256(data) {
  return createHash('sha256').update(data).digest();
}

// Of a text that is no deeper than any parser goes.
function objectIn(text) {
  try {
    const value = (text.match(/[[{]/g) ?? []).length <= 500 && JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

// A map of integers to integers or byte strings, in CBOR.
function readCose(key) {
  let at = 0;
  const head = () => {
    const first = key[at++];
    const short = first & 31;
    const length = short === 24 ? 1 : short === 25 ? 2 : 0;
    if (first === undefined || (short > 23 && length === 0) || at + length > key.length) return [];
    at += length;
    return [first >> 5, length === 0 ? short : key.readUIntBE(at - length, length)];
  };
  const item = () => {
    const [major, argument] = head();
    if (major === 0) return argument;
    if (major === 1) return -1 - argument;
    if (major !== 2 || at + argument > key.length) return undefined;
    at += argument;
    return key.subarray(at - argument, at);
  };
  const fields = new Map();
  const [major, count = 0] = head();
  for (let n = 0; n < count; n++) {
    const [label, value] = [item(), item()];
    if (typeof label !== 'number' || value === undefined || fields.has(label)) return new Map();
    fields.set(label, value);
  }
  return major === 5 && at === key.length ? fields : new Map();
}

// Whether a COSE key signed the message: ES256, EdDSA or RS256.
function isCoseSigned(key, message, signature) {
  const fields = readCose(key);
  const [a, b, c] = [-1, -2, -3].map((label) => fields.get(label));
  const text = (value) => value.toString('base64url');
  const kind = `${fields.get(1)} ${fields.get(3)}`;
  let jwk;
  if (kind === '2 -7' && a === 1 && b?.length === 32 && c?.length === 32)
    jwk = { kty: 'EC', crv: 'P-256', x: text(b), y: text(c) };
  else if (kind === '1 -8' && a === 6 && b?.length === 32 && signature.length === 64)
    return isSigned(Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), b]), message, signature);
  else if (kind === '3 -257' && [256, 384, 512].includes(a?.length) && signature.length === a.length && isExponent(b)) {
    if (a[0] < 128 || a.at(-1) % 2 === 0) return false;
    jwk = { kty: 'RSA', n: text(a), e: text(b) };
  } else return false;
  try {
    return verify('sha256', message, createPublicKey({ key: jwk, format: 'jwk' }), signature);
  } catch {
    return false;
  }
}

function isExponent(e) {
  if (!Buffer.isBuffer(e) || e.length === 0) return false;
  const value = BigInt(`0x${e.toString('hex')}`);
  return value >= 65537n && value < 2n ** 31n && value % 2n === 1n;
}

// Whether the passkey signed the challenge, at the page of its host, with its user verified.
function isAsserted(assertion, challenge) {
  const { rpId, origin } = assertion;
  const [client, data, signature, key] = [
    assertion.clientDataJSON,
    assertion.authenticatorData,
    assertion.signature,
    assertion.publicKey,
  ].map(unbase64url);
  if (!client || !data || !signature || !key) return false;
  const host = /^https?:\/\/([a-z0-9.-]{1,253})(?::[0-9]{1,5})?$/.exec(origin)?.[1];
  if (host === undefined || rpId === '' || !(host === rpId || host.endsWith(`.${rpId}`))) return false;
  let said;
  try {
    said = objectIn(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(client));
  } catch {}
  if (said?.type !== 'webauthn.get' || said.challenge !== challenge || said.origin !== origin) return false;
  if (data.length < 37 || !data.subarray(0, 32).equals(sha256(rpId)) || (data[32] & 5) !== 5) return false;
  return isCoseSigned(key, Buffer.concat([data, sha256(client)]), signature);
}

const ASSERTION = ['credentialId', 'publicKey', 'rpId', 'origin', 'clientDataJSON', 'authenticatorData', 'signature'];

// What a passkey signs: something else for each verdict.
function challengeOf(verdict, digest) {
  if (verdict === 'approve') return digest;
  return sha256(JSON.stringify({ digest, v: 'kms/approval-word/1', verdict })).toString('base64url');
}

// The assertion, where there is one. Each factor, key and credential belongs to one user, and each passkey has one key.
function needFactor(seq, user, { factor, assertion }, challenge) {
  const id = factorOf(factor);
  if (id === undefined) bad(seq, 'gives a word without a second factor');
  const marks = [`factor ${id}`];
  if (assertion !== undefined) {
    const isFit = factor.kind === 'passkey' && isObject(assertion);
    const isOne = isFit && ASSERTION.every((name) => typeof assertion[name] === 'string');
    if (isOne && !keys.has(id)) keys.set(id, assertion.publicKey);
    const isSame = isOne && keys.get(id) === assertion.publicKey;
    if (!isSame || (challenge !== undefined && !isAsserted(assertion, challenge)))
      bad(seq, 'has an assertion that does not verify');
    marks.push(`key ${assertion.publicKey}`, `credential ${assertion.credentialId}`);
  }
  for (const mark of marks) {
    if ((owners.get(mark) ?? user) !== user) bad(seq, 'gives a word with the second factor of another user');
    owners.set(mark, user);
  }
  return assertion;
}

function factorOf(factor) {
  return isObject(factor) && isWord(factor.id) && ['totp', 'passkey'].includes(factor.kind) ? factor.id : undefined;
}

// A rule that holds was changed with the words that it asks for itself.
function changeRule(seq, createdAt, { object, rule, approval }) {
  if (!isObject(object) || typeof object.id !== 'string') return;
  const before = rules.get(object.id);
  if (before && holdsAt(before, createdAt) && !isDoneUnder(object.id, approval))
    bad(seq, 'changes a rule without the words that it asks for');
  if (!isObject(rule)) return void rules.delete(object.id);
  const { count, window, expires, approvers } = rule;
  const users = isObject(approvers) && Array.isArray(approvers.users) ? approvers.users : undefined;
  rules.set(object.id, { count, window, expires, users });
}

function holdsAt({ expires }, at) {
  return typeof expires !== 'number' || at < expires;
}

function isDoneUnder(id, approval) {
  const { glass, use, broken, rules: its } = isObject(approval) ? approval : {};
  return glass !== undefined || (use !== undefined && (broken === true || hasRule(its, id)));
}

function hasRule(list, id) {
  return Array.isArray(list) && list.some((rule) => isObject(rule) && rule.id === id);
}

function isCount(value) {
  return Number.isInteger(value) && value >= 1;
}

function isWindow(value) {
  return value === 'once' || (typeof value === 'number' && value > 0);
}

function isStatedRule(rule) {
  if (!isObject(rule) || !isWord(rule.id) || !isCount(rule.count) || !isWindow(rule.window)) return false;
  return rule.expires === null || typeof rule.expires === 'number';
}

// Acts on further things, in a statement or the record of an act.
function areFurther(acts) {
  const isOne = ({ action, object }) => typeof action === 'string' && (object === null || isWord(object));
  return Array.isArray(acts) && acts.every((each) => isObject(each) && isOne(each));
}

function isSameFurther(stated, done = []) {
  const isSame = ({ action, object }, at) => action === stated[at].action && object === stated[at].object;
  return areFurther(done) && done.length === stated.length && done.every(isSame);
}

// A rule that a statement names, as it is known.
function knownRule(seq, { id, count, window, expires }) {
  const known = rules.get(id);
  const isSame = known && known.count === count && known.window === window && known.expires === expires;
  if (known ? !isSame : isWhole) bad(seq, 'asks for words by another rule than there was');
  // Made before the export begins.
  if (!known) rules.set(id, { count, window, expires, users: undefined });
  return rules.get(id);
}

function ask(seq, { keyid, props }, { id, statement, digest }) {
  const isText = isWord(id) && typeof statement === 'string' && !/\p{Surrogate}/u.test(statement);
  const said = isText && isWord(digest) && sha256(statement).toString('base64url') === digest && objectIn(statement);
  const { v, request, requester, tenant: its, recorded, ring, object, further, rules: stated, at } = said || {};
  const hasObject = object === null || (isObject(object) && isWord(object.id) && isWord(object.type));
  const hasRules = Array.isArray(stated) && stated.length > 0 && stated.every(isStatedRule);
  const isOwn = request === id && requester === keyid && isObject(props.object) && props.object.id === id;
  if (
    !said ||
    v !== 'kms/approval/1' ||
    !isOwn ||
    !isWord(its) ||
    !isWord(recorded) ||
    typeof ring !== 'string' ||
    !hasObject ||
    !areFurther(further) ||
    typeof at !== 'number' ||
    !hasRules ||
    new Set(stated.map((rule) => rule.id)).size < stated.length
  )
    bad(seq, 'has a statement that does not fit its digest or its record');
  tenant ??= its;
  if (its !== tenant) bad(seq, 'has a statement of another tenant');
  if (requests.has(id)) bad(seq, 'asks for approval under an id that is taken');
  const asked = new Map(stated.map((rule) => [rule.id, knownRule(seq, rule)]));
  const begun = { asked, words: new Map(), isOver: false, uses: 0 };
  requests.set(id, { digest, requester, recorded, ring, object, further, stated, at, ...begun });
}

// undefined where it was made before the export begins.
function requestOf(seq, id, why) {
  const request = requests.get(id);
  if (!request && (isWhole || typeof id !== 'string')) bad(seq, why);
  return request;
}

// A request ends when somebody ends it, and after a day without the words that it needs.
function isOverAt({ isOver, at }, now) {
  return isOver || now > at + DAY + SPARE;
}

function give(seq, { createdAt, action, keyid }, said) {
  const { id, digest, verdict } = said;
  const request = requestOf(seq, id, 'gives a word on no request');
  if (!isWord(digest) || (request && digest !== request.digest))
    bad(seq, 'gives a word on another digest than that of the request');
  const own = action === 'approval.approve' ? 'approve' : 'deny';
  if (verdict !== own) bad(seq, 'gives another word than its action says');
  const signed = needFactor(seq, keyid, said, challengeOf(own, digest));
  if (!request) return;
  if (keyid === request.requester) bad(seq, 'gives a word of who asked');
  if (isOverAt(request, createdAt)) bad(seq, 'gives a word on a request that was over');
  if (request.words.has(keyid)) bad(seq, 'gives a second word of one user');
  request.words.set(keyid, { seq, at: createdAt, approves: own === 'approve', signed });
  if (own === 'deny') request.isOver = true;
}

function breakGlass(seq, { createdAt, keyid }, said) {
  const { glass, id } = said;
  if (!isWord(glass) || glasses.has(glass)) bad(seq, 'breaks the glass under an id that is taken');
  glasses.add(glass);
  if (id === undefined) return;
  const request = requestOf(seq, id, 'breaks the glass for no request');
  needFactor(seq, keyid, said, request && challengeOf('break-glass', request.digest));
  if (!request) return;
  if (isOverAt(request, createdAt)) bad(seq, 'breaks the glass for a request that was over');
  request.glass = { id: glass, at: createdAt };
}

function act(seq, record, said) {
  const { action, createdAt, keyid, props, ringname } = record;
  if (said.glass !== undefined) {
    if (!isWord(said.glass)) bad(seq, 'was done by broken glass that no record tells of');
    broken.push({ seq, action, keyid, glass: said.glass });
  }
  if (said.glass !== undefined || said.use === undefined) return;
  acts++;
  const request = requestOf(seq, said.id, 'was done without a request');
  if (!request) return void unchecked++;
  if (said.digest !== request.digest) bad(seq, 'was done over another digest than that of the request');
  const { type, id } = isObject(props.object) ? props.object : {};
  const isThing = !request.object || request.object.type !== type || request.object.id === id;
  const isSame = isThing && isSameFurther(request.further, said.further);
  if (keyid !== request.requester || action !== request.recorded || ringname !== request.ring || !isSame)
    bad(seq, 'is not what was approved');
  if (request.isOver) bad(seq, 'was done after the request was over');
  const often = 'was done more often, or later, than was approved';
  if (said.use !== request.uses + 1) bad(seq, often);
  if (said.broken === true) {
    const { glass } = request;
    if (!glass) bad(seq, 'was done by broken glass that no record tells of');
    if (request.uses++ > 0 || createdAt > glass.at + DAY + SPARE) bad(seq, often);
    acts--;
    return void broken.push({ seq, action, keyid, glass: glass.id });
  }
  if (!Array.isArray(said.rules) || said.rules.length === 0) bad(seq, 'was done by no rule');
  const grantedAt = Math.max(...said.rules.map((rule) => completedAt(seq, rule, request)));
  // A window is never wider than those that approvers signed.
  const windows = [...said.rules, ...request.stated].map(({ window }) => window);
  if (windows.includes('once') && request.uses > 0) bad(seq, often);
  const lasts = Math.min(...windows.map((window) => (window === 'once' ? DAY : window * 1000)));
  if (!(createdAt <= grantedAt + lasts + SPARE)) bad(seq, often);
  for (const [rule, known] of request.asked)
    if (rules.get(rule) === known && holdsAt(known, createdAt) && !hasRule(said.rules, rule))
      bad(seq, 'counts no words for a rule of its statement');
  request.uses++;
  if (request.uses > 1) return;
  const users = [...new Set(said.rules.flatMap((rule) => rule.words))];
  done.push({ seq, action, keyid, id: said.id, words: users.map((user) => [user, request.words.get(user)]) });
}

// When the word came that completed the count of a rule.
function completedAt(seq, rule, { requester, words }) {
  const { id, count, window, words: users } = isObject(rule) ? rule : {};
  const known = rules.get(id);
  const isRule = isWord(id) && isWindow(window) && isCount(count) && Array.isArray(users);
  const isKnown = known && known.count === count && known.window === window;
  const hasThem = isRule && (!known?.users || users.every((user) => known.users.includes(user)));
  if (!isRule || !hasThem || !(isKnown || (!known && !isWhole)))
    bad(seq, 'counts words for another rule than there was');
  if (users.includes(requester)) bad(seq, 'counts the word of who asked');
  const given = users.map((user) => words.get(user));
  if (given.some((word) => !word?.approves)) bad(seq, 'counts a word that was not given before');
  if (new Set(users).size < users.length) bad(seq, 'counts one word twice');
  if (given.length < count) bad(seq, 'was done with fewer words than it needs');
  return given.sort((one, other) => one.seq - other.seq)[count - 1].at;
}

function checkApproval(record) {
  const { seq, action, keyid, createdAt, props, reporter, validAction, status } = record;
  if (reporter !== undefined || !isObject(props) || typeof action !== 'string' || typeof keyid !== 'string') return;
  const isDone = validAction === true && typeof status === 'number' && status < 400;
  if (typeof createdAt !== 'number' || !(isDone || action === 'approval.request')) return;
  const said = isObject(props.approval) ? props.approval : undefined;
  if (action === 'approval.rule') {
    act(seq, record, said ?? {});
    changeRule(seq, createdAt, props);
  } else if (!said) return;
  else if (action === 'approval.request') ask(seq, record, said);
  else if (action === 'approval.approve' || action === 'approval.deny') give(seq, record, said);
  else if (action === 'approval.withdraw' || action === 'approval.expire') {
    const request = requestOf(seq, said.id, 'ends no request');
    if (request) request.isOver = true;
  } else if (action === 'approval.break-glass') breakGlass(seq, record, said);
  else act(seq, record, said);
}

function shown(text) {
  return isWord(text) ? text : JSON.stringify(text).replace(/[^ -~]/gu, '?');
}

function printApprovals() {
  if (acts > 0) console.log(`done with approval: ${acts}`);
  for (const { seq, action, keyid, id, words } of done) {
    console.log(`record ${seq}: ${shown(action)} by ${shown(keyid)}, approved as ${shown(id)}`);
    for (const [user, { seq: at, signed }] of words) {
      const key = signed && sha256(unbase64url(signed.publicKey)).toString('hex');
      const proof = key ? `signed by the passkey ${key}` : 'the word of the appliance only';
      console.log(`  by ${shown(user)} in record ${at}: ${proof}`);
    }
  }
  if (unchecked > 0) console.log(`${unchecked} of them were asked for before this export begins, and were not checked`);
  for (const { seq, action, keyid, glass } of broken)
    console.log(`record ${seq}: ${shown(action)} by ${shown(keyid)}, WITHOUT APPROVAL, by broken glass ${glass}`);
}

const [exportFile, headFile, publicKey] = process.argv.slice(2);
if (!exportFile || process.argv.length > 5) end(2, 'usage: node verify.mjs EXPORT [HEAD [PUBLIC-KEY]]');
const head = headFile === undefined ? undefined : readHead(headFile);
if (head) needKey(head, publicKey);
tenant = head?.tenant;
let seq = 0;
let hash = ZERO;
let isFirst = true;
let lead;

function beginAfter(head) {
  [seq, hash] = [head.seq, Buffer.from(head.hash, 'base64url')];
  before = seq;
  isWhole = seq === 0;
}

// Before the first line, where retention dropped what was before it: the head of the last record that was dropped.
function readLead(line) {
  lead = headOf(line, `the first line of ${exportFile}`);
  // A later head vouches for it by the hashes between them.
  if (!head || head.seq < lead.seq) needKey(lead, publicKey);
  if (head && head.tenant !== lead.tenant) bad(lead.seq, 'is of another tenant than the head');
  if (head && head.seq === lead.seq && head.hash !== lead.hash) bad(lead.seq, 'is not the one that was anchored');
  beginAfter(lead);
  tenant = lead.tenant;
}

function check(line) {
  const begins = isFirst;
  isFirst = false;
  if (begins && line.toString('latin1', 0, 10) === '{"format":') return readLead(line);
  const record = line.length <= MOST && parse(line);
  if (begins && head && record.seq === head.seq + 1) beginAfter(head);
  seq++;
  if (record.seq !== seq) bad(seq, 'is missing, moved or not readable');
  hash = createHash('sha256').update(hash).update(record.text).digest();
  const text = hash.toString('base64url');
  if (text !== record.hash) bad(seq, 'was changed');
  if (head && seq === head.seq && text !== head.hash) bad(seq, 'is not the one that was anchored');
  if (record.text.includes('"approval')) checkApproval(record.record);
}

let rest = Buffer.alloc(0);
try {
  for await (const chunk of createReadStream(exportFile, { highWaterMark: 1 << 22 })) {
    rest = Buffer.concat([rest, chunk]);
    for (let at = rest.indexOf(10); at >= 0; at = rest.indexOf(10)) {
      check(rest.subarray(0, at));
      rest = rest.subarray(at + 1);
    }
    if (rest.length > MOST) bad(seq + 1, 'is missing, moved or not readable');
  }
} catch (error) {
  end(3, `not verified: ${error.message}`);
}
if (rest.length > 0) check(rest);
if (head && seq < head.seq) bad(head.seq, 'was anchored and is missing at the end');
if (seq === 0 && !lead) bad(1, 'is missing, as are all others');
// The breaking is recorded right before its act: the first record of a later part may be without.
for (const { seq: at, glass } of broken)
  if (!glasses.has(glass) && (isWhole || at !== before + 1))
    bad(at, 'was done by broken glass that no record tells of');
console.log(`valid up to record ${seq}`);
if (lead) console.log(`records up to ${lead.seq} were dropped by retention; key: ${lead.publicKey}`);
if (lead && head && head.seq < lead.seq)
  console.log(`record ${head.seq}, anchored at ${head.signedAt}, is one of them`);
else if (head) {
  console.log(`record ${head.seq}, anchored at ${head.signedAt}, is still there; key: ${head.publicKey}`);
  if (head.mlDsa?.isChecked) console.log(`signed with ML-DSA-65, too; SHA-256 of the key: ${head.mlDsa.sha256}`);
  else if (head.mlDsa) console.log('its ML-DSA-65 signature was not checked: this Node cannot');
}
printApprovals();
