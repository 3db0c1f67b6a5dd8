// The executable without other languages: it runs, formats English as before, and other languages as the root locale
// does.
import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { readElf } from '../../../build/runtime/elf.ts';
import { dropLanguages } from '../../../build/runtime/without-languages.ts';

const directory = mkdtempSync(join(tmpdir(), 'kms-languages-'));
after(() => rmSync(directory, { recursive: true, force: true }));

/** Requests that the appliance, its libraries and Node make of ICU, also under a user's environment. */
const program = `
  const when = new Date(Date.UTC(2026, 10, 22, 15, 4, 5));
  console.log(JSON.stringify([
    (1234567.891).toLocaleString('en'),
    when.toLocaleString('en-GB', { timeZone: 'Europe/Berlin', timeZoneName: 'long' }),
    [...new Intl.Segmenter('en', { granularity: 'grapheme' }).segment('e\\u0301👩‍👩‍👧x')].length,
    ['e\\u0301', 'ﬁ', '①'].map((text) => [text.normalize('NFC'), text.normalize('NFKC')]),
    ['İstanbul'.toLowerCase(), 'straße'.toUpperCase(), 'I'.toLocaleLowerCase('tr')],
    /^\\p{L}+$/u.test('Ωß'),
    ['b', 'a', 'ä', 'Z'].sort(new Intl.Collator('en').compare),
    new URL('http://münchen.example/ü').href,
    new TextDecoder('utf-8').decode(new Uint8Array([0xe2, 0x82, 0xac])),
    new TextDecoder('utf-16le').decode(new Uint8Array([0xac, 0x20])),
    new TextDecoder('latin1').decode(new Uint8Array([0xe4])),
    new Intl.PluralRules('en', { type: 'ordinal' }).select(2),
  ]));
  console.log(JSON.stringify([
    typeof (1234567.891).toLocaleString('de'),
    typeof when.toLocaleString('ja', { dateStyle: 'full' }),
    [...new Intl.Segmenter('th', { granularity: 'word' }).segment('สวัสดีชาวโลก')].length > 0,
    ['ö', 'z'].sort(new Intl.Collator('sv').compare).length,
    typeof new Intl.DisplayNames('fr', { type: 'region' }).of('DE'),
    typeof new Intl.DurationFormat('zh').format({ hours: 1 }),
  ]));`;

function run(file: string): string[] {
  const env = { PATH: process.env.PATH, LANG: 'de_DE.UTF-8', LC_ALL: 'de_DE.UTF-8' };
  const { status, signal, stdout, stderr } = spawnSync(file, { encoding: 'utf8', env });
  assert.equal(status, 0, `${signal}: ${stderr}`);
  return stdout.trim().split('\n');
}

test('a program says English as before, and needs a quarter less room', () => {
  const whole = join(directory, 'whole');
  writeFileSync(join(directory, 'main.cjs'), program);
  const config = { main: 'main.cjs', output: whole, disableExperimentalSEAWarning: true };
  writeFileSync(join(directory, 'sea.json'), JSON.stringify(config));
  execFileSync(process.execPath, ['--build-sea', 'sea.json'], {
    cwd: directory,
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const bytes = readFileSync(whole);
  // Another platform's runtime is left as it is.
  if (!readElf(bytes)) return assert.equal(dropLanguages(bytes), undefined);
  const smaller = dropLanguages(Buffer.from(bytes));
  assert.ok(smaller && bytes.length - smaller.length > 25e6, `${smaller?.length} of ${bytes.length} bytes`);
  const file = join(directory, 'smaller');
  writeFileSync(file, smaller, { mode: 0o755 });
  const [english, others] = run(file);
  assert.equal(english, run(whole)[0]);
  assert.equal(others, '["string","string",true,2,"string","string"]');
  assert.equal(dropLanguages(smaller), undefined, 'a second time there is nothing to drop');
});

test('what is no such program is left as it is', () => {
  const runtime = readFileSync(process.execPath);
  for (const bytes of [Buffer.alloc(100), Buffer.from('\x7fELF'.padEnd(100, '\0'), 'latin1'), runtime]) {
    const before = Buffer.from(bytes);
    assert.equal(dropLanguages(bytes), undefined);
    assert.ok(bytes.equals(before));
  }
});
