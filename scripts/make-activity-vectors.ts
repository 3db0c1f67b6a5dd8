// Generates the test vectors of docs/activity-export.md in test/vectors/activity: one export that verifies, and others
// with one fault each.
import { mkdirSync, writeFileSync } from 'node:fs';
import { exportLine, signHead } from '../src/core/activity.ts';
import { toBase64Url } from '../src/crypto/bytes.ts';
import { tenantKeys } from '../src/seal/tenant-keys.ts';
import { chainHash, genesisHash } from '../src/store/activity/chain.ts';
import { activityLine } from '../src/store/activity/record.ts';
import type { ActivityInput } from '../src/store/port.ts';

const dir = new URL('../test/vectors/activity/', import.meta.url);
const start = Date.UTC(2026, 0, 2, 3, 4, 5, 678);
const id = (n: number): string => `act_01kdyjk84e${String(n).padStart(16, '0')}`;

const entries = [
  { action: 'system.tenant', keyid: 'local', props: { operation: 'create', name: 'blue', hosts: ['blue.example'] } },
  { action: 'keyring.create', ringname: 'payroll' },
  { action: 'keyring.encrypt', ringname: 'payroll' },
  { action: 'keyring.decrypt', ringname: 'payroll', validAction: false, status: 403 },
  { action: 'apikey.validate', props: { note: 'Grüße, 世界 \u{1f511}', '\u2028': ['"\\', 1.5, null, true] } },
  { action: 'keyring.encrypt', ringname: 'payroll' },
  { action: 'keyring.rotate', ringname: 'payroll' },
  { action: 'activity.read', keyid: 'local' },
];

/** Records of later program versions, with the address of the caller and the change made. */
const audited = [
  { action: 'session.create', keyid: 'user_01kdyjk84e0000000000000000', address: '203.0.113.7' },
  {
    action: 'user.update',
    address: '2001:db8::7',
    props: {
      object: { type: 'user', id: 'user_01kdyjk84e0000000000000000', name: 'Ada "Λ"' },
      changed: ['flags'],
      granted: ['keyring.payroll.decrypt'],
      revoked: ['*'],
    },
  },
  { action: 'keyring.encrypt', ringname: 'payroll', address: '203.0.113.7' },
  { action: 'activity.read', address: '203.0.113.7' },
];

interface Chain {
  readonly lines: readonly string[];
  /** Hash n is that after n records; hash 0 is the genesis hash. */
  readonly hashes: readonly Uint8Array[];
}

function chainOf(records: readonly Partial<ActivityInput>[]): Chain {
  const hashes: Uint8Array[] = [genesisHash()];
  const lines = records.map((record, index) => {
    const seq = index + 1;
    const input = {
      id: id(seq),
      createdAt: start + index * 1000,
      keyid: 'apik_01kdyjk84e0000000000000000',
      action: '',
      ringname: '',
      validAction: true,
      status: 200,
      props: {},
      ...record,
    };
    const line = activityLine(input, seq);
    const hash = chainHash(hashes[index] ?? genesisHash(), line);
    hashes.push(hash);
    return exportLine(line, toBase64Url(hash));
  });
  return { lines, hashes };
}

const { lines, hashes } = chainOf(entries);
const later = chainOf(audited);

const keys = tenantKeys(new Map([[1, new Uint8Array(32).fill(7)]]));
const tenant = { id: 'tenant_01kdyjk84e0000000000000000', name: 'blue', limits: {}, keys };
const headAt = (seq: number, of = hashes, isPostQuantum = false) =>
  signHead(tenant, { seq, hash: toBase64Url(of[seq] ?? genesisHash()) }, start + 60_000, isPostQuantum);

const [, , third = ''] = lines;
const changed = third.replace('"status":200', '"status":201');
/** The third record rewritten, and everything after it with matching hashes: only a head reveals the forgery. */
const forged = forge();

const cases = [
  { file: 'valid.jsonl', lines, valid: true, upTo: 8 },
  { file: 'valid.jsonl', since: 'head-8.json', valid: true, upTo: 8 },
  { file: 'valid.jsonl', since: 'head-5.json', valid: true, upTo: 8 },
  { file: 'valid.jsonl', since: 'head-5-ml-dsa-65.json', valid: true, upTo: 8 },
  { file: 'later.jsonl', lines: lines.slice(5), since: 'head-5.json', valid: true, upTo: 8 },
  { file: 'later.jsonl', valid: false, record: 1 },
  { file: 'changed.jsonl', lines: lines.with(2, changed), valid: false, record: 3 },
  { file: 'dropped.jsonl', lines: lines.toSpliced(2, 1), valid: false, record: 3 },
  {
    file: 'reordered.jsonl',
    lines: [...lines.slice(0, 2), lines[3], lines[2], ...lines.slice(4)],
    valid: false,
    record: 3,
  },
  { file: 'repeated.jsonl', lines: lines.toSpliced(3, 0, third), valid: false, record: 4 },
  { file: 'cut.jsonl', lines: lines.slice(0, 6), valid: true, upTo: 6 },
  { file: 'cut.jsonl', since: 'head-8.json', valid: false, record: 8 },
  { file: 'rewritten.jsonl', lines: forged, valid: true, upTo: 8 },
  { file: 'rewritten.jsonl', since: 'head-5.json', valid: false, record: 5 },
  { file: 'rewritten.jsonl', since: 'head-5-ml-dsa-65.json', valid: false, record: 5 },
  { file: 'valid.jsonl', since: 'head-forged.json', valid: false, record: 5 },
  { file: 'audited.jsonl', lines: later.lines, valid: true, upTo: 4 },
  { file: 'audited.jsonl', since: 'head-audited.json', valid: true, upTo: 4 },
  {
    file: 'elsewhere.jsonl',
    lines: later.lines.map((line) => line.replace('"address":"2001:db8::7"', '"address":"2001:db8::8"')),
    valid: false,
    record: 2,
  },
  {
    file: 'ungranted.jsonl',
    lines: later.lines.map((line) => line.replace('keyring.payroll.decrypt', 'keyring.payroll.encrypt')),
    since: 'head-audited.json',
    valid: false,
    record: 2,
  },
];

mkdirSync(dir, { recursive: true });
const write = (name: string, text: string): void => writeFileSync(new URL(name, dir), text);
for (const { file, lines: content } of cases) if (content) write(file, content.join(''));
for (const seq of [5, 8]) write(`head-${seq}.json`, `${JSON.stringify(headAt(seq), null, 2)}\n`);
write('head-5-ml-dsa-65.json', `${JSON.stringify(headAt(5, hashes, true), null, 2)}\n`);
write('head-audited.json', `${JSON.stringify(headAt(4, later.hashes), null, 2)}\n`);
write('head-forged.json', `${JSON.stringify({ ...headAt(5), signedAt: '2027-01-01T00:00:00.000Z' }, null, 2)}\n`);
const manifest = cases.map(({ lines: _, ...rest }) => rest);
write('cases.json', `${JSON.stringify(manifest, null, 2)}\n`);

function forge(): string[] {
  let hash = hashes[2] ?? genesisHash();
  return lines.map((line, index) => {
    if (index < 2) return line;
    const record = `{${line.slice('{"hash":"",'.length + 43, -1)}`;
    const anew = index === 2 ? record.replace('"status":200', '"status":201') : record;
    hash = chainHash(hash, anew);
    return exportLine(anew, toBase64Url(hash));
  });
}
