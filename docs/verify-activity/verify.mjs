// Verifies an export of a kms activity log: node verify.mjs EXPORT [HEAD [PUBLIC-KEY]]. Needs Node 20 alone; docs/activity-export.md says
// why it is enough. HEAD is the JSON of `kms activity head --json`, kept since; PUBLIC-KEY the key in it, noted when it was first seen, or
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
    return Number.isSafeInteger(record.seq) && !isDeep(record) && { hash: match[1], text, seq: record.seq };
  } catch {
    return false;
  }
}

const [exportFile, headFile, publicKey] = process.argv.slice(2);
if (!exportFile || process.argv.length > 5) end(2, 'usage: node verify.mjs EXPORT [HEAD [PUBLIC-KEY]]');
const head = headFile === undefined ? undefined : readHead(headFile);
if (head) needKey(head, publicKey);
let seq = 0;
let hash = ZERO;
let isFirst = true;
let lead;

function beginAfter(head) {
  [seq, hash] = [head.seq, Buffer.from(head.hash, 'base64url')];
}

// Before the first line, where retention dropped what was before it: the head of the last record that was dropped.
function readLead(line) {
  lead = headOf(line, `the first line of ${exportFile}`);
  // A later head vouches for it by the hashes between them.
  if (!head || head.seq < lead.seq) needKey(lead, publicKey);
  if (head && head.tenant !== lead.tenant) bad(lead.seq, 'is of another tenant than the head');
  if (head && head.seq === lead.seq && head.hash !== lead.hash) bad(lead.seq, 'is not the one that was anchored');
  beginAfter(lead);
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
console.log(`valid up to record ${seq}`);
if (lead) console.log(`records up to ${lead.seq} were dropped by retention; key: ${lead.publicKey}`);
if (lead && head && head.seq < lead.seq)
  console.log(`record ${head.seq}, anchored at ${head.signedAt}, is one of them`);
else if (head) {
  console.log(`record ${head.seq}, anchored at ${head.signedAt}, is still there; key: ${head.publicKey}`);
  if (head.mlDsa?.isChecked) console.log(`signed with ML-DSA-65, too; SHA-256 of the key: ${head.mlDsa.sha256}`);
  else if (head.mlDsa) console.log('its ML-DSA-65 signature was not checked: this Node cannot');
}
