// The vectors of docs/activity-export.md: verified by the appliance's own code and by the program that the documentation gives to
// auditors, which must agree on each.
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createReadStream, readFileSync } from 'node:fs';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { verifyExport } from '../../src/server/verify-export.ts';

interface Case {
  readonly file: string;
  readonly since?: string;
  readonly valid: boolean;
  /** The last record, of one that verifies. */
  readonly upTo?: number;
  /** The record that is named, of one that does not. */
  readonly record?: number;
}

const dir = fileURLToPath(new URL('../vectors/activity/', import.meta.url));
const program = fileURLToPath(new URL('../../docs/verify-activity/verify.mjs', import.meta.url));
const cases: Case[] = JSON.parse(readFileSync(`${dir}cases.json`, 'utf8'));
const run = promisify(execFile);

async function byAuditor({ file, since }: Case): Promise<string> {
  const args = [program, dir + file, ...(since === undefined ? [] : [dir + since])];
  try {
    return (await run(process.execPath, args)).stdout;
  } catch (error) {
    return (error as { stderr: string }).stderr;
  }
}

async function byAppliance({ file, since }: Case): Promise<string> {
  const head = since === undefined ? {} : { since: JSON.parse(readFileSync(dir + since, 'utf8')) };
  try {
    const { head: last, broken } = await verifyExport(createReadStream(dir + file), head);
    return broken ? broken.problem : `valid up to record ${last.seq}`;
  } catch (error) {
    return (error as Error).message;
  }
}

for (const each of cases) {
  test(`${each.file}${each.since === undefined ? '' : ` with ${each.since}`}`, async () => {
    const [auditor, appliance] = await Promise.all([byAuditor(each), byAppliance(each)]);
    if (each.valid) {
      assert.equal(auditor, `valid up to record ${each.upTo}\n`);
      assert.equal(appliance, `valid up to record ${each.upTo}`);
      return;
    }
    assert.match(auditor, new RegExp(`^NOT VALID: record ${each.record} `));
    assert.match(appliance, new RegExp(`record.* ${each.record}\\b|up to ${each.record}\\b|^the head was changed`));
  });
}

test('how the bytes are cut into pieces makes no difference', async () => {
  const bytes = readFileSync(`${dir}valid.jsonl`);
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
  const since = JSON.parse(readFileSync(`${dir}head-5.json`, 'utf8'));
  assert.match(
    (await verifyExport(nothing(), { since })).broken?.problem ?? '',
    /records up to 5, which were anchored/,
  );
});
