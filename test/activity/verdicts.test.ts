// All verifiers agree: for any head and export, the programs for auditors and `kms activity verify --file` reach the
// same verdict. The cases are those of test/vectors/activity; those for Ed25519 are CCTV's.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { ApprovalVerdict as Case } from '../../scripts/make-approval-vectors.ts';
import { verifyExport } from '../../src/appliance/verify-export.ts';
import { utf8 } from '../../src/crypto/bytes.ts';
import { ed25519ToSpki, ed25519Verify } from '../../src/crypto/ed25519.ts';
import { desk } from '../cli/kms.ts';
import { python, pythonCommand, pythonMissing } from '../support/python.ts';
import { hex, vectorsOf } from '../support/vectors.ts';

type PlainCase = Omit<Case, 'name' | 'export' | 'head'> & { readonly file: string; readonly since?: string };

const vectors = new URL('../vectors/', import.meta.url);
const programs = fileURLToPath(new URL('../../docs/verify-activity/', import.meta.url));
const read = (name: string): Buffer => readFileSync(new URL(`activity/${name}`, vectors));
const cases: Case[] = [
  ...JSON.parse(read('cases.json').toString()).map(({ file, since, ...rest }: PlainCase) => ({
    name: `${file} with ${since}`,
    export: file,
    ...(since !== undefined && { head: read(since).toString('base64') }),
    ...rest,
  })),
  ...JSON.parse(read('verdicts.json').toString()),
  ...JSON.parse(read('approvals.json').toString()),
];
const dir = mkdtempSync(join(tmpdir(), 'kms-verdicts-'));
after(() => rmSync(dir, { recursive: true, force: true }));

/** Arguments of each case: EXPORT, HEAD, PUBLIC-KEY, as far as the case has them. */
const files = cases.map(({ export: log, head, publicKey }, at) => {
  const logFile = log.endsWith('.jsonl')
    ? fileURLToPath(new URL(`activity/${log}`, vectors))
    : join(dir, `${at}.jsonl`);
  if (!log.endsWith('.jsonl')) writeFileSync(logFile, Buffer.from(log, 'base64'));
  if (head === undefined) return [logFile];
  const headFile = join(dir, `${at}.json`);
  writeFileSync(headFile, Buffer.from(head, 'base64'));
  return [logFile, headFile, ...(publicKey === undefined ? [] : [publicKey])];
});

const withHead = files[cases.findIndex(({ name }) => name === 'the head as it was made')] ?? [];

/** Fails if the cryptography package or its OpenSSL is too old. */
const mlDsaInPython = `
from cryptography.hazmat.primitives.asymmetric.mldsa import MLDSA65PublicKey
MLDSA65PublicKey.from_public_bytes(bytes(1952))
`;
const pythonMissesMlDsa = spawnSync(pythonCommand, ['-c', mlDsaInPython]).status !== 0;

interface Verdict {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

const mlDsaLine = 'signed with ML-DSA-65, too; SHA-256 of the key: [0-9a-f]{64}\n';

/** Output for an export that verifies. */
function linesOf(each: Case): string {
  const { upTo, head = '', dropped, approvals } = each;
  const key = 'key: [^ ]{60}\n';
  const isDropped =
    dropped !== undefined && head !== '' && JSON.parse(Buffer.from(head, 'base64').toString()).seq < dropped;
  const state = isDropped ? 'is one of them\n' : `is still there; ${key}`;
  return [
    `valid up to record ${upTo}\n`,
    dropped === undefined ? '' : `records up to ${dropped} were dropped by retention; ${key}`,
    head === '' ? '' : `record \\d+, anchored at [^ ]{24}, ${state}`,
    isSignedTwice(each) ? mlDsaLine : '',
    // Lines about approvals are compared in full where the case has them.
    approvals === undefined
      ? '(?:.* approv.*\n(?:  by .*\n)*|\\d+ of them were .*\n|.*WITHOUT APPROVAL.*\n)*'
      : approvals.map(literally).join(''),
  ].join('');
}

function literally(line: string): string {
  return `${line.replace(/[.()]/g, '\\$&')}\n`;
}

function isSignedTwice({ head = '' }: Case): boolean {
  return Buffer.from(head, 'base64').includes('"mlDsaPublicKey"');
}

function isRight(each: Case, { code, stdout, stderr }: Verdict): void {
  const { name, valid, record } = each;
  const said = `${name}: ${code} ${stdout}${stderr}`;
  assert.equal(code, valid ? 0 : 1, said);
  if (valid) {
    assert.match(stdout, new RegExp(`^${linesOf(each)}$`), said);
    return;
  }
  assert.equal(stdout, '', said);
  assert.match(
    stderr,
    new RegExp(`^NOT VALID: ${record === undefined ? '.* is no head' : `record ${record} .*`}\n$`),
    said,
  );
}

test('verify.mjs', () => {
  for (const [at, each] of cases.entries()) {
    const args = [join(programs, 'verify.mjs'), ...(files[at] ?? [])];
    const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8' });
    isRight(each, { code: status, stdout, stderr });
  }
});

test('verify.py', { skip: pythonMissing }, () => {
  // One interpreter for all cases: its start is what takes time.
  const verdicts: Verdict[] = python(
    `
import contextlib, io, json, sys
sys.path.insert(0, sys.argv[1])
import verify
verdicts = []
for args in json.load(sys.stdin):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            verify.main(*args)
        except SystemExit as end:
            code = end.code
    verdicts.append({"code": code, "stdout": out.getvalue(), "stderr": err.getvalue()})
json.dump(verdicts, sys.stdout)
`,
    [programs],
    files,
  );
  assert.equal(verdicts.length, cases.length);
  for (const [at, each] of cases.entries()) {
    const isBeyondIt = pythonMissesMlDsa && (each.needs !== undefined || (each.valid && isSignedTwice(each)));
    if (!isBeyondIt) isRight(each, verdicts[at] ?? assert.fail());
  }
});

test('who cannot check ML-DSA-65 says so, and does not verify what is to be signed with it', () => {
  const at = cases.findIndex(({ name }) => name === 'with ML-DSA-65');
  const [log = '', head = ''] = files[at] ?? [];
  const noted = cases.find(({ name }) => name.endsWith('the key of that that was noted'))?.publicKey ?? assert.fail();
  const program = readFileSync(join(programs, 'verify.mjs'), 'utf8');
  const place = 'function isMlDsaSigned(spki, message, signature) {\n';
  assert.ok(program.includes(place));
  writeFileSync(join(dir, 'older.mjs'), program.replace(place, `${place}  if (spki) return undefined;\n`));
  const withoutMlDsa = `
import sys
sys.path.insert(0, sys.argv[1])
sys.modules["cryptography.hazmat.primitives.asymmetric.mldsa"] = None
import verify
verify.main(*sys.argv[2:])
`;
  const runs: readonly (readonly [string, readonly string[]])[] = [
    [process.execPath, [join(dir, 'older.mjs')]],
    ...(pythonMissing === false ? [[pythonCommand, ['-B', '-c', withoutMlDsa, programs]] as const] : []),
  ];
  for (const [command, args] of runs) {
    const run = (...more: readonly string[]) => spawnSync(command, [...args, ...more], { encoding: 'utf8' });
    const plain = run(log, head);
    assert.equal(plain.status, 0, plain.stderr);
    assert.match(plain.stdout, /is still there; .*\nits ML-DSA-65 signature was not checked: this \w+ cannot\n$/);
    const strict = run(log, head, noted);
    assert.deepEqual([strict.status, strict.stdout], [3, '']);
    assert.match(strict.stderr, /^not verified: this \w+ cannot check the ML-DSA-65 signature of a head\n$/);
  }
});

test('kms activity verify --file', async () => {
  await using d = await desk();
  for (const [at, each] of cases.entries()) {
    const [log = '', head, publicKey] = files[at] ?? [];
    const since = head === undefined ? [] : ['--since', head];
    const key = publicKey === undefined ? [] : ['--public-key', publicKey];
    const { code, stdout, stderr } = await d.kms(['activity', 'verify', '--file', log, ...since, ...key]);
    const said = `${each.name}: ${code} ${stdout}${stderr}`;
    assert.equal(code, each.valid ? 0 : 1, said);
    if (each.valid) {
      assert.match(stdout, new RegExp(`^verified: \\d+ records, up to record ${each.upTo} `), said);
      if (each.approvals) assert.ok(stdout.endsWith(`\n${each.approvals.join('\n')}\n`), said);
    } else {
      assert.equal(stdout, '', said);
      const none = /head of the activity log|a head of the format|too large to hold the head/;
      const place = new RegExp(`\\b${each.record}\\b|the head (was changed|is signed by another key)`);
      assert.match(stderr, each.record === undefined ? none : place, said);
    }
  }
});

test('without the package for signatures verify.py says so, and never anything that looks like success', {
  skip: pythonMissing,
}, () => {
  const without = `
import sys
sys.path.insert(0, sys.argv[1])
sys.modules["cryptography"] = None
import verify
verify.main(*sys.argv[2:])
`;
  const [log = '', head = ''] = withHead;
  const run = (...args: string[]) =>
    spawnSync(pythonCommand, ['-B', '-c', without, programs, ...args], { encoding: 'utf8' });
  const signed = run(log, head);
  assert.deepEqual([signed.status, signed.stdout], [3, '']);
  assert.match(signed.stderr, /^not verified: .*`cryptography`, which is not installed\n$/);
  const alone = run(log);
  assert.deepEqual([alone.status, alone.stdout], [0, 'valid up to record 8\n'], 'an export alone has no signature');
});

test('wrong usage and files that are not there are no verdict', () => {
  const [log = '', head = ''] = withHead;
  for (const [command, program] of [
    [process.execPath, 'verify.mjs'],
    ...(pythonMissing === false ? [[pythonCommand, 'verify.py'] as const] : []),
  ] as const) {
    const run = (...args: string[]) => {
      const { status, stdout } = spawnSync(command, [join(programs, program), ...args], { encoding: 'utf8' });
      assert.equal(stdout, '', `${program} ${args}`);
      return status;
    };
    assert.equal(run(), 2);
    assert.equal(run(log, head, 'key', 'more'), 2);
    assert.equal(run(join(dir, 'none')), 3);
    assert.equal(run(log, join(dir, 'none')), 3);
    assert.equal(run(dir), 3);
  }
});

interface Signature {
  readonly key: string;
  readonly sig: string;
  readonly msg: string;
  readonly flags?: readonly string[] | null;
}

/** Signatures on which verifiers differ: https://github.com/C2SP/CCTV, ed25519. */
const signatures: Signature[] = vectorsOf('cctv-ed25519-edge-cases');
/**
 * A point with a component of small order is accepted if the equation holds without the cofactor. All other oddities
 * are refused.
 */
const harmless = ['low_order_component_A', 'low_order_component_R'];
const expected = signatures.map(({ flags }) => (flags ?? []).every((flag) => harmless.includes(flag)));

function isAsExpected(verdicts: readonly boolean[]): void {
  assert.equal(verdicts.length, 914);
  assert.equal(expected.filter(Boolean).length, 43);
  const wrong = signatures.filter((_, at) => verdicts[at] !== expected[at]);
  assert.deepEqual(wrong, []);
}

/** Verifiers of Ed25519 signatures: the product's own, and that of each program for auditors. */
const verifiers: Readonly<Record<string, () => Promise<boolean[]> | boolean[]>> = {
  'ed25519.ts': () => signatures.map(({ key, sig, msg }) => ed25519Verify(hex(key), utf8(msg), hex(sig))),
  'verify-activity/verify.mjs': () => byJavaScript('verify-activity'),
  'verify-asset/verify.mjs': () => byJavaScript('verify-asset'),
};

async function byJavaScript(folder: string): Promise<boolean[]> {
  const program = readFileSync(new URL(`../../docs/${folder}/verify.mjs`, import.meta.url), 'utf8');
  // The program without its main part: its imports, constants and functions.
  const [parts, rest] = program.split('\nconst [', 2);
  assert.ok(parts && rest);
  writeFileSync(join(dir, `${folder}.mjs`), `${parts}\nexport { isSigned, isSound };\n`);
  const { isSigned, isSound } = await import(join(dir, `${folder}.mjs`));
  // Some versions of Node accept these points.
  for (const { key, sig, flags } of signatures) {
    const odd = (point: string) =>
      flags?.some((flag) => flag === `low_order_${point}` || flag === `non_canonical_${point}`);
    assert.equal(isSound(Buffer.from(key, 'hex')), !odd('A'));
    assert.equal(isSound(Buffer.from(sig, 'hex').subarray(0, 32)), !odd('R'));
  }
  return signatures.map(({ key, sig, msg }) =>
    isSigned(Buffer.from(ed25519ToSpki(hex(key))), Buffer.from(msg), Buffer.from(sig, 'hex')),
  );
}

for (const [name, verify] of Object.entries(verifiers)) {
  test(`the edge cases of Ed25519: ${name}`, async () => {
    isAsExpected(await verify());
  });
}

for (const folder of ['verify-activity', 'verify-asset']) {
  test(`the edge cases of Ed25519: ${folder}/verify.py`, { skip: pythonMissing }, () => {
    const program = `
import json, sys
sys.path.insert(0, sys.argv[1])
import verify
def is_signed(key, message, signature):
    if hasattr(verify, "is_signed"):
        return verify.is_signed(key, message, signature)
    try:
        return verify.check(key, message, signature) is None
    except Exception:
        return False
cases = json.load(sys.stdin)
print(json.dumps([is_signed(bytes.fromhex(c["key"]), c["msg"].encode(), bytes.fromhex(c["sig"])) for c in cases]))
`;
    isAsExpected(python(program, [join(programs, '..', folder)], signatures));
  });
}

test('how the bytes are cut into pieces makes no difference', async () => {
  const bytes = read('valid.jsonl');
  for (const size of [1, 7, 100, bytes.length]) {
    const pieces = async function* () {
      for (let from = 0; from < bytes.length; from += size) yield bytes.subarray(from, from + size);
    };
    assert.equal((await verifyExport(pieces())).count, 8);
  }
  const withoutEnd = async function* () {
    yield bytes.subarray(0, -1);
  };
  assert.equal((await verifyExport(withoutEnd())).count, 8);
});

test('an empty export is one of no records', async () => {
  const nothing = async function* (): AsyncGenerator<Uint8Array> {};
  assert.equal((await verifyExport(nothing())).count, 0);
  const since = JSON.parse(read('head-5.json').toString());
  assert.match(
    (await verifyExport(nothing(), { since })).broken?.problem ?? '',
    /records up to 5, which were anchored/,
  );
});
