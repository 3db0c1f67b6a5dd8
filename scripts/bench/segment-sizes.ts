// Bytes per record in a closed segment, by kind of record: a whole segment of each, made in memory.
import { idFromBytes } from '../../src/crypto/ulid.ts';
import { genesisHash } from '../../src/store/activity/chain.ts';
import { inflatePart } from '../../src/store/activity/compression.ts';
import { activityLine } from '../../src/store/activity/record.ts';
import { decodeHeader, headerLength, openPart, type SegmentRoot } from '../../src/store/activity/segment.ts';
import { SegmentMaker } from '../../src/store/activity/segment-writer.ts';
import type { ActivityInput } from '../../src/store/port.ts';
import { history } from './activity-records.ts';
import { goal, row } from './figures.ts';

const records = 8192;
const firstSeq = 5_000_001;
const key = new Uint8Array(32).fill(1);
const uid = new Uint8Array(16);

export function measureSizes(): void {
  let state = 7;
  const chance = (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
  const id = (prefix: string): string =>
    idFromBytes(
      prefix,
      Uint8Array.from({ length: 16 }, () => chance(256)),
    );
  const addresses = (count: number): string[] =>
    Array.from({ length: count }, () => `${10 + chance(200)}.${chance(256)}.${chance(256)}.${chance(256)}`);
  const [few, many, all] = [addresses(20), addresses(1000), addresses(records)];
  const reporter = id('apik');
  const past = history({ id: '', keyids: [] });
  const usual = Array.from({ length: records }, (_, at) => past.record(at + 1));
  const busy = { keyid: reporter, action: 'keyring.encrypt', ringname: 'payroll', validAction: true, status: 200 };
  const object = () => ({ id: id('user'), name: `ada.${chance(1e6)}`, type: 'user' });
  const deed = () => ({ changed: ['flags'], granted: ['keyring.payroll.decrypt'], object: object() });
  const kinds: Readonly<Record<string, (record: ActivityInput, at: number) => ActivityInput>> = {
    'one key, one ring': (record) => ({ ...record, ...busy, props: {} }),
    'keys, rings': (record) => ({ ...record, props: {} }),
    'and some props': (record) => record,
    'and 20 addresses': (record) => ({ ...record, address: few[chance(20)] ?? '' }),
    'and 1,000 addresses': (record) => ({ ...record, address: many[chance(1000)] ?? '' }),
    'and an address each': (record, at) => ({ ...record, address: all[at] ?? '' }),
    'a client in the props': (record) => ({ ...record, reporter, props: { client: { name: `app-${chance(50)}` } } }),
    'an id in the props': (record) => ({ ...record, reporter, props: { request: id('r') } }),
    'something made': (record) => ({ ...record, keyid: 'local', action: 'user.update', ringname: '', props: deed() }),
  };
  console.log(`\nBytes of a record in a closed segment of ${records}`);
  row('', 'all', 'records', 'texts', 'postings', 'of a line');
  for (const [name, make] of Object.entries(kinds)) {
    const lines = usual.map((record, at) => activityLine(make(record, at), firstSeq + at));
    const { bytes, root } = segmentOf(lines);
    const each = (...lengths: number[]): string => (lengths.reduce((sum, one) => sum + one, 0) / records).toFixed(2);
    row(
      name,
      each(bytes),
      each(...root.lengths),
      each(root.originsLength ?? 0),
      each(...root.pageLengths),
      each(...lines.map(({ length }) => length)),
    );
    goal(name, bytes / records, 30, 'at most', ' bytes');
  }
}

function segmentOf(lines: readonly string[]): { readonly bytes: number; readonly root: SegmentRoot } {
  const segment = new SegmentMaker({ seq: firstSeq - 1, hash: genesisHash() }, lines.length);
  for (const line of lines) segment.add(line);
  const { bytes } = segment.finish({ epoch: 1, key: () => key }, uid);
  const header = decodeHeader(bytes);
  if (typeof header === 'string') throw new Error(header);
  const sealed = bytes.subarray(headerLength, headerLength + header.rootLength);
  const root = openPart(key, bytes.subarray(0, headerLength), 'root', 0, sealed);
  return { bytes: bytes.length, root: JSON.parse(new TextDecoder().decode(inflatePart(root ?? new Uint8Array()))) };
}
