// Addresses and blocks of addresses: canonical forms, and agreement with Node's own rules.
import assert from 'node:assert/strict';
import { BlockList, isIP } from 'node:net';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { addressBytes, addressSet, canonicalBlock } from '../../src/model/addresses.ts';

describe('canonicalBlock', () => {
  const table: [text: string, canonical: string | undefined][] = [
    ['192.0.2.1', '192.0.2.1'],
    ['192.0.2.1/32', '192.0.2.1'],
    ['192.0.2.77/24', '192.0.2.0/24'],
    ['192.0.2.77/25', '192.0.2.0/25'],
    ['192.0.2.255/31', '192.0.2.254/31'],
    ['10.1.2.3/8', '10.0.0.0/8'],
    ['255.255.255.255/0', '0.0.0.0/0'],
    ['2001:DB8::1', '2001:db8::1'],
    ['2001:0db8:0000:0000:0000:0000:0000:0001/128', '2001:db8::1'],
    ['2001:db8:1:2:3:4:5:6/64', '2001:db8:1:2::/64'],
    ['2001:db8:1:2:3:4:5:6/33', '2001:db8::/33'],
    ['::/0', '::/0'],
    ['::', '::'],
    ['::1', '::1'],
    // RFC 5952 §4.2: a single zero field is not shortened, the longest run is, and of two equal runs the first.
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['1:0:0:0:0:0:0:0', '1::'],
    ['::192.0.2.1', '::c000:201'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221'],
    // An IPv4-mapped address is the IPv4 address.
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['::FFFF:C000:201', '192.0.2.1'],
    ['0:0:0:0:0:ffff:c000:201/128', '192.0.2.1'],
    ['::ffff:10.1.2.3/104', '10.0.0.0/8'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['::ffff:0:0/95', undefined],
    ...[
      [
        '',
        '/',
        '/8',
        '1.2.3',
        '1.2.3.4.5',
        '1.2.3.256',
        '01.2.3.4',
        '1.2.3.4/',
        '1.2.3.4/33',
        '1.2.3.4/08',
        '1.2.3.4/+8',
      ],
      ['1.2.3.4/8/8', '1.2.3.4/-1', ' 1.2.3.4', '1.2.3.4 ', '0x7f.0.0.1', '2130706433', '1.2.3.4:80', 'localhost', '*'],
      [
        ':',
        ':::',
        '1::2::3',
        '1:2:3',
        '1:2:3:4:5:6:7',
        '1:2:3:4:5:6:7:8:9',
        '1:2:3:4:5:6:7::8',
        '12345::',
        'g::',
        '::/129',
      ],
      [
        '[::1]',
        'fe80::1%eth0',
        '1.2.3.4::',
        '::1.2.3.4:5',
        '::1.2.3',
        '::1.2.3.456',
        '::1/64/1',
        '::1/',
        '::1/064',
        '::٣',
      ],
    ].flatMap((texts) => texts.map((text): [string, undefined] => [text, undefined])),
  ];
  for (const [text, canonical] of table) {
    it(`${JSON.stringify(text)} is ${canonical ?? 'none'}`, () => {
      assert.equal(canonicalBlock(text), canonical);
      if (canonical !== undefined) assert.equal(canonicalBlock(canonical), canonical);
    });
  }
});

const v4 = fc.ipV4();
const v6 = fc.ipV6();

it('what is an address is as Node has it', () => {
  fc.assert(fc.property(fc.oneof(v4, v6), (text) => assert.ok(addressBytes(text), text)));
  const nearly = fc.stringMatching(/^[0-9a-f:.]{1,24}$/);
  fc.assert(fc.property(nearly, (text) => assert.equal(addressBytes(text) !== undefined, isIP(text) !== 0, text)));
});

it('which addresses a block holds is as Node has it', () => {
  const pick = <A>(addresses: fc.Arbitrary<A>, bits: number) =>
    fc.record({ block: addresses, other: addresses, prefix: fc.integer({ min: 0, max: bits }) });
  const check = (family: 'ipv4' | 'ipv6') => (given: { block: string; other: string; prefix: number }) => {
    const { block, other, prefix } = given;
    const list = new BlockList();
    list.addSubnet(block, prefix, family);
    const canonical = canonicalBlock(`${block}/${prefix}`);
    assert.ok(canonical);
    const set = addressSet([canonical]);
    for (const address of [block, other]) {
      // Node matches a mapped address against both kinds.
      if (addressBytes(address)?.length !== addressBytes(block)?.length) continue;
      assert.equal(set.has(address), list.check(address, family), `${canonical} ${address}`);
    }
  };
  fc.assert(fc.property(pick(v4, 32), check('ipv4')));
  const unmapped = v6.filter((text) => addressBytes(text)?.length === 16);
  fc.assert(fc.property(pick(unmapped, 128), check('ipv6')));
});

it('a set of blocks', () => {
  const set = addressSet(['10.0.0.0/8', '192.0.2.1', '2001:db8::/32', '192.0.2.128/25']);
  for (const address of [
    ...['10.0.0.0', '10.255.255.255', '192.0.2.1', '192.0.2.128', '192.0.2.255', '::ffff:10.1.2.3', '::ffff:c000:201'],
    ...['2001:db8::', '2001:DB8:ffff:ffff:ffff:ffff:ffff:ffff', '2001:db8::1%eth0'],
  ]) {
    for (const time of [1, 2]) assert.equal(set.has(address), true, `${address} ${time}`);
  }
  for (const address of [
    ...[
      '',
      'unknown',
      '9.255.255.255',
      '11.0.0.0',
      '192.0.2.0',
      '192.0.2.2',
      '192.0.2.127',
      '10.0.0.1:80',
      '::10.0.0.1',
    ],
    ...['2001:db7:ffff::', '2001:db9::', '[2001:db8::1]'],
  ]) {
    for (const time of [1, 2]) assert.equal(set.has(address), false, `${address} ${time}`);
  }
  // A block of all IPv6 contains no IPv4 address, however that is written.
  assert.equal(addressSet(['::/0']).has('::ffff:192.0.2.1'), false);
  assert.equal(addressSet(['0.0.0.0/0']).has('::ffff:192.0.2.1'), true);
  assert.equal(addressSet([]).has('192.0.2.1'), false);
  // The cache is bounded, and its results are right.
  for (let i = 0; i < 1000; i++) assert.equal(set.has(`10.0.${i >> 8}.${i & 255}`), true);
  assert.equal(set.has('10.0.0.0'), true);
});
