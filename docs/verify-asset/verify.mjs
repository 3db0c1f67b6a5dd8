// Verifies the asset that a header carries: node verify.mjs HEADER ASSET KEYS, with Node 20 alone. All three are files: the header's text, the
// asset's JSON (id, parents, data), and what `kms asset signing-keys --json` prints. Exit codes: 0 valid; 1 not valid; 2 wrong usage;
// 3 nothing was verified. What is signed: docs/formats.md.
import { createPublicKey, verify } from 'node:crypto';
import { readFileSync } from 'node:fs';

// Of small order are the points whose y is one of five: with them, or other texts for a point, verifiers differ.
function isSound(point) {
  const [P, Y8] = [2n ** 255n - 19n, 0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n];
  const y = BigInt(`0x${Buffer.from(point).reverse().toString('hex')}`) & (2n ** 255n - 1n);
  return y < P && ![0n, 1n, P - 1n, Y8, P - Y8].includes(y);
}

function isSigned(key, message, signature) {
  if (!isSound(key.subarray(12)) || !isSound(signature.subarray(0, 32))) return false;
  return verify(null, message, createPublicKey({ key, format: 'der', type: 'spki' }), signature);
}

// RFC 8785: names sorted by UTF-16 code units, numbers and texts as JavaScript writes them.
function canonical(value, left = 64) {
  const isOdd = typeof value === 'string' ? !value.isWellFormed() : value === Infinity || value === -Infinity;
  if (left < 0 || isOdd) throw new Error('the asset is nothing that is signed');
  if (Array.isArray(value)) return `[${value.map((each) => canonical(each, left - 1))}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const names = Object.keys(value).sort();
  return `{${names.map((name) => `${canonical(name)}:${canonical(value[name], left - 1)}`)}}`;
}

function main(...files) {
  const read = (file) => new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file));
  const [headerText, asset, { keys }] = files.map((file, at) => (at === 0 ? read(file) : JSON.parse(read(file))));
  const [, text] = /^[ \t\r\n]*(AQ[EMc]B[\w-]{248})[ \t\r\n]*$/.exec(headerText) ?? [];
  if (text === undefined) throw new Error('the header is none of format 1 with an asset');
  const header = Buffer.from(text, 'base64url');
  const [epoch, version] = [header.readUInt16BE(3), header.readUInt32BE(105)];
  const ulid = BigInt(`0x${header.toString('hex', 89, 105)}`);
  const digit = (_, at) => '0123456789abcdefghjkmnpqrstvwxyz'[Number((ulid >> BigInt(125 - 5 * at)) & 31n)];
  const carried = `asset_${Array.from({ length: 26 }, digit).join('')}`;
  const { id, parents = [], data = null } = asset;
  if (id !== carried) throw new Error(`the header carries ${carried}`);
  const key = Buffer.from(keys.find((each) => each.epoch === epoch)?.publicKey ?? '', 'base64');
  if (!/^302a300506032b6570032100.{64}$/.test(key.toString('hex'))) throw new Error(`no public key of epoch ${epoch}`);
  const hash = header.toString('base64url', 2, 77);
  const message = Buffer.from(canonical({ id, version, parents, data, hash }));
  if (!isSigned(key, message, header.subarray(109, 173))) throw new Error('the signature does not fit the asset');
  console.log(`valid: ${id}, version ${version}, signed with the key of epoch ${epoch}`);
}

const [, , ...files] = process.argv;
try {
  if (files.length !== 3) throw Object.assign(new Error('usage: node verify.mjs HEADER ASSET KEYS'), { exit: 2 });
  main(...files);
} catch (error) {
  process.exitCode = error.exit ?? (error.syscall ? 3 : 1);
  console.error(`${{ 1: 'NOT VALID: ', 3: 'not verified: ' }[process.exitCode] ?? ''}${error.message}`);
}
