// Hosts and their ports have one canonical form each; texts that are no host have none.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { canonicalHost, isLoopbackHost, readAuthority } from '../../src/model/hosts.ts';

test('each host has one form', () => {
  const table: Readonly<Record<string, readonly string[]>> = {
    'kms.example': ['kms.example', 'KMS.Example', 'kms.example.'],
    a_b: ['a_b', 'A_B.'],
    'xn--bcher-kva.example': ['bücher.example', 'BÜCHER.example', 'bücher.example.', 'xn--bcher-kva.example'],
    '127.0.0.1': ['127.0.0.1', '127.0.0.1.', '[::ffff:127.0.0.1]', '[::FFFF:7f00:1]', '[0:0:0:0:0:ffff:127.0.0.1]'],
    '[::1]': ['[::1]', '[0:0:0:0:0:0:0:1]', '[0000::0001]', '[::0.0.0.1]', '[::1%lo]', '[::1%25lo]'],
    '[fe80::1]': ['[fe80::1]', '[FE80:0::1%eth0]', '[fe80::1%25eth0]'],
  };
  for (const [host, forms] of Object.entries(table)) {
    for (const form of forms) assert.equal(canonicalHost(form), host, form);
    assert.equal(canonicalHost(host), host);
  }
});

test('what is no host has none', () => {
  const none = [
    ...['', '.', '..', 'a..b', '.a', 'a..', '-a', 'a-', '*', 'a b', 'a/b', 'a@b', 'a%b', 'a:b', '\u0000', 'ü/x', 'ü@x'],
    ...['256.1.1.1', '1.2.3', '1.2.3.4.5', '01.2.3.4', '127.1', '0x7f.1', '0x', '1', 'a.1', '127.0.0.1%lo'],
    ...['::1', '[]', '[', ']', '[::1', '::1]', '[127.0.0.1]', '[::1]]', '[[::1]]', '[:::1]', '[g::]', '[%lo]'],
    ...['x'.repeat(64), 'x.'.repeat(130), 'x'.repeat(20_000), `[${'0:'.repeat(8_000)}1]`],
  ];
  for (const text of none) assert.equal(canonicalHost(text), undefined, text.slice(0, 50));
});

test('an authority is a host, and perhaps a port', () => {
  const table: Readonly<Record<string, readonly [host: string, text: string] | undefined>> = {
    'A.b': ['a.b', 'a.b'],
    'a:80': ['a', 'a:80'],
    'a.:080': ['a', 'a:80'],
    'a:': ['a', 'a'],
    'a:0': ['a', 'a:0'],
    '[0::1]:8080': ['[::1]', '[::1]:8080'],
    '[::1]:': ['[::1]', '[::1]'],
    '[::ffff:127.0.0.1]:1': ['127.0.0.1', '127.0.0.1:1'],
    '[fe80::1%25eth0]:65535': ['[fe80::1]', '[fe80::1]:65535'],
  };
  for (const [text, expected] of Object.entries(table)) {
    const read = readAuthority(text);
    assert.deepEqual(read && [read.host, read.text], expected, text);
  }
  for (const text of [
    '',
    ':80',
    'a:b',
    'a:-1',
    'a:65536',
    'a:123456',
    '::1',
    '::1:80',
    '[::1]80',
    'a:80:80',
    'ü',
    'a, b',
  ]) {
    assert.equal(readAuthority(text), undefined, text);
  }
  // The cache is bounded, and its results are right.
  for (let n = 0; n < 1000; n++) assert.equal(readAuthority(`h${n}:1`)?.host, `h${n}`);
  assert.equal(readAuthority('a:80')?.text, 'a:80');
});

test('hosts that stand for this machine', () => {
  for (const host of [
    'localhost',
    'LOCALHOST.',
    '127.0.0.1',
    '127.9.9.9',
    '::1',
    '[::1]',
    '[::ffff:127.0.0.1]',
    '0::1',
  ]) {
    assert.equal(isLoopbackHost(host), true, host);
  }
  const others = [
    '127.evil.example',
    '127.999.1.1',
    '127.1',
    '128.0.0.1',
    '::',
    '0.0.0.0',
    'localhost.evil.example',
    '',
  ];
  for (const host of others) assert.equal(isLoopbackHost(host), false, host);
});
