// Verifies an export of a kms activity log, and the approvals in it: node verify.mjs EXPORT [HEAD [PUBLIC-KEY]]. Needs Node 20 alone;
// docs/activity-export.md says why it is enough. HEAD is the JSON of `kms activity head --json`, kept since; PUBLIC-KEY the key in it, noted when it was first seen, or
// SHA-256 in hex of its ML-DSA-65 key. Signatures of that need Node 24.6; with another it says that they were not checked.
// Exit codes: 0 valid; 1 not valid; 2 wrong usage; 3 nothing was verified.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';

const MOST = 64 * 1024 * 1024;
const ZERO = Buffer.alloc(32);

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
const glasses = new Set();
const done = [];
const broken = [];
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

// Whether the passkey signed the digest as its challenge, at the page of its host, with its user verified.
function isAsserted(assertion, digest) {
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
  if (said?.type !== 'webauthn.get' || said.challenge !== digest || said.origin !== origin) return false;
  if (data.length < 37 || !data.subarray(0, 32).equals(sha256(rpId)) || (data[32] & 5) !== 5) return false;
  return isCoseSigned(key, Buffer.concat([data, sha256(client)]), signature);
}

const ASSERTION = ['credentialId', 'publicKey', 'rpId', 'origin', 'clientDataJSON', 'authenticatorData', 'signature'];

// The assertion, where the factor is a passkey that always has one key.
function needAssertion(seq, digest, factor, assertion) {
  const isFit = factorOf(factor) && factor.kind === 'passkey' && isObject(assertion);
  const isOne = isFit && ASSERTION.every((name) => typeof assertion[name] === 'string');
  if (isOne && !keys.has(factor.id)) keys.set(factor.id, assertion.publicKey);
  if (!isOne || keys.get(factor.id) !== assertion.publicKey || !isAsserted(assertion, digest))
    bad(seq, 'has an assertion that does not verify');
  return assertion;
}

function factorOf(factor) {
  return isObject(factor) && isWord(factor.id) && ['totp', 'passkey'].includes(factor.kind) ? factor.id : undefined;
}

function seeRule({ object, rule }) {
  if (!isObject(object) || typeof object.id !== 'string') return;
  if (!isObject(rule)) return void rules.delete(object.id);
  const users = isObject(rule.approvers) && Array.isArray(rule.approvers.users) ? rule.approvers.users : undefined;
  rules.set(object.id, { count: rule.count, window: rule.window, users });
}

function ask(seq, { keyid, props }, { id, statement, digest }) {
  const isText = isWord(id) && typeof statement === 'string' && !/\p{Surrogate}/u.test(statement);
  const said = isText && isWord(digest) && sha256(statement).toString('base64url') === digest && objectIn(statement);
  const { v, request, requester, tenant: its, recorded, ring, object } = said || {};
  const hasObject = object === null || (isObject(object) && isWord(object.id) && isWord(object.type));
  const isOwn = request === id && requester === keyid && isObject(props.object) && props.object.id === id;
  if (
    !said ||
    v !== 'kms/approval/1' ||
    !isOwn ||
    !isWord(its) ||
    !isWord(recorded) ||
    typeof ring !== 'string' ||
    !hasObject
  )
    bad(seq, 'has a statement that does not fit its digest or its record');
  tenant ??= its;
  if (its !== tenant) bad(seq, 'has a statement of another tenant');
  if (requests.has(id)) bad(seq, 'asks for approval under an id that is taken');
  requests.set(id, { digest, requester, recorded, ring, object, words: new Map(), isOver: false, uses: 0 });
}

// undefined where it was made before the export begins.
function requestOf(seq, id, why) {
  const request = requests.get(id);
  if (!request && (isWhole || typeof id !== 'string')) bad(seq, why);
  return request;
}

function give(seq, { createdAt, action, keyid }, { id, digest, verdict, factor, assertion }) {
  const request = requestOf(seq, id, 'gives a word on no request');
  if (!request) return;
  if (digest !== request.digest) bad(seq, 'gives a word on another digest than that of the request');
  const approves = action === 'approval.approve';
  if (verdict !== (approves ? 'approve' : 'deny')) bad(seq, 'gives another word than its action says');
  if (keyid === request.requester) bad(seq, 'gives a word of who asked');
  if (request.isOver) bad(seq, 'gives a word on a request that was over');
  if (request.words.has(keyid)) bad(seq, 'gives a second word of one user');
  if (!factorOf(factor)) bad(seq, 'gives a word without a second factor');
  const signed = assertion === undefined ? undefined : needAssertion(seq, digest, factor, assertion);
  request.words.set(keyid, { seq, at: createdAt, approves, factor: factor.id, signed });
  if (!approves) request.isOver = true;
}

function breakGlass(seq, { glass, id, factor, assertion }) {
  if (!isWord(glass) || glasses.has(glass)) bad(seq, 'breaks the glass under an id that is taken');
  glasses.add(glass);
  const request = id === undefined ? undefined : requestOf(seq, id, 'breaks the glass for no request');
  if (request) request.glass = glass;
  if (request && assertion !== undefined) needAssertion(seq, request.digest, factor, assertion);
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
  const isSame = !request.object || request.object.type !== type || request.object.id === id;
  if (keyid !== request.requester || action !== request.recorded || ringname !== request.ring || !isSame)
    bad(seq, 'is not what was approved');
  if (request.isOver) bad(seq, 'was done after the request was over');
  const often = 'was done more often, or later, than was approved';
  if (said.use !== request.uses + 1) bad(seq, often);
  if (said.broken === true) {
    if (request.glass === undefined) bad(seq, 'was done by broken glass that no record tells of');
    request.uses++;
    acts--;
    return void broken.push({ seq, action, keyid, glass: request.glass });
  }
  if (!Array.isArray(said.rules) || said.rules.length === 0) bad(seq, 'was done by no rule');
  const grantedAt = Math.max(...said.rules.map((rule) => completedAt(seq, rule, request)));
  for (const { window } of said.rules)
    if (window === 'once' ? request.uses > 0 : !(createdAt <= grantedAt + window * 1000)) bad(seq, often);
  request.uses++;
  if (request.uses > 1) return;
  const users = [...new Set(said.rules.flatMap((rule) => rule.words))];
  done.push({ seq, action, keyid, id: said.id, words: users.map((user) => [user, request.words.get(user)]) });
}

// When the word came that completed the count of a rule.
function completedAt(seq, rule, { requester, words }) {
  const { id, count, window, words: users } = isObject(rule) ? rule : {};
  const isWindow = window === 'once' || (typeof window === 'number' && window > 0);
  const known = rules.get(id);
  const isRule = isWord(id) && isWindow && Number.isInteger(count) && count >= 1 && Array.isArray(users);
  const isKnown = known && known.count === count && known.window === window;
  const hasThem = isRule && (!known?.users || users.every((user) => known.users.includes(user)));
  if (!isRule || !hasThem || !(isKnown || (!known && !isWhole)))
    bad(seq, 'counts words for another rule than there was');
  if (users.includes(requester)) bad(seq, 'counts the word of who asked');
  const given = users.map((user) => words.get(user));
  if (given.some((word) => !word?.approves)) bad(seq, 'counts a word that was not given before');
  const signed = given.flatMap((word) => word.signed ?? []);
  const marks = [
    users,
    given.map((word) => word.factor),
    ...['publicKey', 'credentialId'].map((name) => signed.map((each) => each[name])),
  ];
  if (marks.some((each) => new Set(each).size < each.length)) bad(seq, 'counts one second factor twice');
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
    seeRule(props);
  } else if (!said) return;
  else if (action === 'approval.request') ask(seq, record, said);
  else if (action === 'approval.approve' || action === 'approval.deny') give(seq, record, said);
  else if (action === 'approval.withdraw' || action === 'approval.expire') {
    const request = requestOf(seq, said.id, 'ends no request');
    if (request) request.isOver = true;
  } else if (action === 'approval.break-glass') breakGlass(seq, said);
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
for (const { seq: at, glass } of broken)
  if (!glasses.has(glass)) bad(at, 'was done by broken glass that no record tells of');
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
