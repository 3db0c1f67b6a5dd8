// Verifies an export of a kms activity log: node verify.mjs EXPORT [HEAD]. Needs Node alone; docs/activity-export.md says why it is enough.
// HEAD is the JSON of `kms activity head --json`, kept since; its signature is checked too.
import { createHash, createPublicKey, verify } from 'node:crypto';
import { createReadStream, readFileSync } from 'node:fs';

const [exportFile, headFile] = process.argv.slice(2);
const head = headFile && JSON.parse(readFileSync(headFile, 'utf8'));
let seq = 0;
let hash = Buffer.alloc(32);

function bad(number, why) {
  console.error(`NOT VALID: record ${number} ${why}`);
  process.exit(1);
}

function parse(line) {
  const match = /^\{"hash":"([\w-]{43})",(".*\})$/s.exec(line.toString('latin1'));
  try {
    return match && { hash: match[1], bytes: Buffer.from(`{${match[2]}`, 'latin1'), seq: JSON.parse(line).seq };
  } catch {
    return null;
  }
}

function check(line) {
  const record = parse(line);
  if (seq === 0 && head && record?.seq === head.seq + 1) [seq, hash] = [head.seq, Buffer.from(head.hash, 'base64url')];
  seq++;
  if (record?.seq !== seq) bad(seq, 'is missing, moved or not readable');
  hash = createHash('sha256').update(hash).update(record.bytes).digest();
  const text = hash.toString('base64url');
  if (text !== record.hash) bad(seq, 'was changed');
  if (head && seq === head.seq && text !== head.hash) bad(seq, 'is not the one that was anchored');
}

if (head) {
  const message = `${head.format}\n${head.tenant}\n${head.seq}\n${head.hash}\n${head.signedAt}\n`;
  const key = createPublicKey({ key: Buffer.from(head.publicKey, 'base64'), format: 'der', type: 'spki' });
  if (!verify(null, Buffer.from(message), key, Buffer.from(head.signature, 'base64')))
    bad(head.seq, 'has a forged head');
}
let rest = Buffer.alloc(0);
for await (const chunk of createReadStream(exportFile)) {
  rest = Buffer.concat([rest, chunk]);
  for (let end = rest.indexOf(10); end >= 0; end = rest.indexOf(10)) {
    check(rest.subarray(0, end));
    rest = rest.subarray(end + 1);
  }
}
if (rest.length > 0) check(rest);
if (head && seq < head.seq) bad(head.seq, 'was anchored and is missing at the end');
console.log(`valid up to record ${seq}`);
