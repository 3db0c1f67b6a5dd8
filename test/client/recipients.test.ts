// Files of version 2: the vectors, in Python too; every altered bit, every mixture of files and rings; the choice of
// private and public keys; and what a malicious appliance can do to a writer.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { makeRecipientVectors, recipientVectorText } from '../../scripts/make-recipient-vectors.ts';
import { encodePrelude, faultOf, fileFault, readPrelude } from '../../src/client/file-format.ts';
import { inspectFile } from '../../src/client/file-inspection.ts';
import {
  type DecryptStreamOptions,
  decryptBytes,
  decryptFile,
  decryptStream,
  type EncryptStreamOptions,
  encryptBytes,
} from '../../src/client/file-streams.ts';
import type { Client } from '../../src/client/methods.ts';
import { openByRing, openOffline } from '../../src/client/recipients.ts';
import { generateRingKey, readPrivateKeys } from '../../src/client/ring-keys.ts';
import { concatBytes, toBase64, utf8 } from '../../src/crypto/bytes.ts';
import { hkdfSha256 } from '../../src/crypto/hash.ts';
import { decodeHeader, encodeHeader, shareOf } from '../../src/crypto/header.ts';
import { type SealingKeys, sealKeyHash } from '../../src/crypto/key-hash.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { wrapRingKey } from '../../src/crypto/ring-key.ts';
import { idFromBytes } from '../../src/crypto/ulid.ts';
import { parsePublicKey, privateKeyToPkcs8 } from '../../src/crypto/x25519.ts';
import { type ErrorCode, KmsError } from '../../src/errors.ts';
import { hex } from '../support/vectors.ts';
import { cameOutAsTold, type FileVector, fileOf, fileVectors, isItsMessage } from './file-vectors.ts';
import { collect, inPieces } from './streams.ts';

interface Vector extends FileVector {
  readonly kem: string;
  readonly privateKey: string;
  readonly shares: Readonly<Record<string, string>>;
}

const vectors = fileVectors<Vector>('kms-file-2');

for (const [name, vector] of vectors) {
  test(`vector ${name}: ${vector.comment}`, async () => {
    const file = fileOf(vector);
    const privateKeys = [{ bytes: hex(vector.privateKey) }];
    const answer = {
      ringId: 'ring_1',
      ringname: 'r',
      key: { id: 'key_1', type: 'aes256' as const, kem: 'x25519' as const, props: {} },
    };
    for (const size of [file.length + 1, 7000, 1]) {
      const key = async (prelude: Awaited<ReturnType<typeof readPrelude>>): Promise<Uint8Array> => {
        if (Object.keys(vector.shares).length === 0) return (await openOffline(prelude, privateKeys)).fileKey;
        const ask = async (header: string) => {
          const share = vector.shares[header];
          if (share === undefined) throw new KmsError('invalid', 'this is not a header of this service');
          return { ...answer, share: toBase64(hex(share)) };
        };
        return (await openByRing(prelude, { ask, given: privateKeys, privateKeysOf: async () => assert.fail() }))
          .fileKey;
      };
      cameOutAsTold(vector, await collect(decryptFile({ source: inPieces(file, size), key })));
    }
  });
}

test('the vectors are those that the script makes', async () => {
  const made = await makeRecipientVectors();
  assert.deepEqual(made.map(({ name }) => name).sort(), [...vectors.keys()].sort());
  for (const vector of made) {
    const { file, ...fields } = JSON.parse(recipientVectorText(vector));
    const { file: kept, ...stored } = vectors.get(vector.name) ?? assert.fail(vector.name);
    assert.deepEqual(stored, fields);
    assert.deepEqual(fileOf({ file: kept }), fileOf({ file }));
  }
  const kinds = ['valid', 'cut-prelude', 'bad-header', 'wrong-private-key', 'unknown-version', 'wrong-key', 'cut'];
  assert.deepEqual([...new Set(made.map(({ expected }) => expected))].sort(), [...kinds, 'altered'].sort());
});

const program = fileURLToPath(new URL('../../docs/open-file/open.py', import.meta.url));
const interpreters = [join(import.meta.dirname, '../../node_modules/.cache/python/bin/python'), 'python3'];
const python = interpreters.find(
  (each) =>
    (each === 'python3' || existsSync(each)) &&
    spawnSync(each, ['-c', 'import cryptography.hazmat.primitives.hpke']).status === 0,
);
const home = mkdtempSync(join(tmpdir(), 'kms-open-'));
after(() => rmSync(home, { recursive: true, force: true }));

test('the Python program opens what is valid, and nothing else', {
  skip: python === undefined && 'no python3 with the package cryptography 47 or newer is here',
}, () => {
  assert.ok(readFileSync(program, 'utf8').split('\n').length <= 61);
  for (const [name, vector] of vectors) {
    writeFileSync(join(home, 'it.kms'), fileOf(vector));
    const isHybrid = vector.kem === 'mlkem768-x25519';
    const prefix = hex('3034020100300d060b2b0601040183e62d81c87a0420');
    const der = isHybrid ? concatBytes(prefix, hex(vector.privateKey)) : privateKeyToPkcs8(hex(vector.privateKey));
    const pem = `-----BEGIN PRIVATE KEY-----\n${toBase64(der)}\n-----END PRIVATE KEY-----\n`;
    writeFileSync(join(home, 'it.key'), pem);
    // The prelude determines the share to ask for; each vector is opened with one.
    const [first, second] = Object.values(vector.shares);
    const share = name.includes('second-of') || name.includes('two-keys') ? second : first;
    const args = [program, 'it.kms', 'it.key', ...(share === undefined ? [] : [toBase64(hex(share))])];
    const { status, stdout, stderr } = spawnSync(python ?? '', args, { cwd: home, maxBuffer: 1 << 24 });
    const isValid = vector.expected === 'valid';
    assert.equal(status, isValid ? 0 : 1, `${name}: ${stderr}`);
    if (isValid) assert.ok(isItsMessage(stdout, vector), name);
    else assert.deepEqual([stdout.length, /^open\.py: .+\n$/.test(String(stderr))], [0, true], `${name}: ${stderr}`);
  }
});

const compat = (name: string) => JSON.parse(readFileSync(new URL(`../compat/${name}`, import.meta.url), 'utf8'));
const isWhole = (bytes: Uint8Array, { messageLength, messageSha256 }: Vector): void => {
  assert.equal(bytes.length, messageLength);
  assert.equal(createHash('sha256').update(bytes).digest('hex'), messageSha256);
};

test('a file of version 1 that was written once opens for ever', async () => {
  const { header, keyId: id, wrapped: value, privateKey, file, ...digest } = compat('kms-file-1.json');
  const keyData = { encrypted: { key: { value, encoding: 'base64' as const } }, iv: '' };
  const key = { id, type: 'aes256' as const, kem: 'x25519' as const, props: {}, keyData };
  const client = {
    async decrypt(input: object = {}) {
      assert.deepEqual(input, { header });
      return { ringId: 'ring_1', ringname: 'r', key };
    },
  };
  isWhole((await decryptBytes(Buffer.from(file, 'base64'), { client, privateKey })).bytes, digest);
});

test('a file of version 2 that was written once opens for ever, by either of its rings, and offline', async () => {
  const { rings, file, ...digest } = compat('kms-file-2.json');
  const bytes = new Uint8Array(Buffer.from(file, 'base64'));
  for (const { header, kem, privateKey, share, opensOffline } of rings) {
    const key = { id: 'key_1', type: 'aes256' as const, kem, props: {} };
    const client = {
      async decrypt(input: object = {}) {
        assert.deepEqual(input, { header });
        return { ringId: 'ring_1', ringname: 'r', key, share };
      },
    };
    isWhole((await decryptBytes(bytes, { client, privateKey })).bytes, digest);
    if (opensOffline) isWhole(await openAlone(bytes, privateKey), digest);
    else await assert.rejects(openAlone(bytes, privateKey), { code: 'refused' });
  }
});

const secret = systemRandom(32);
const sealing: SealingKeys = { epoch: 1, key: (label) => hkdfSha256(secret, label, 32) };

interface TestRing {
  readonly name: string;
  readonly id: string;
  readonly publicKey: string;
  readonly privateKey: string;
  readonly isOffline: boolean;
}

function ring(name: string, isOffline = false, kem: 'x25519' | 'mlkem768-x25519' = 'x25519'): TestRing {
  return { name, id: idFromBytes('ring', systemRandom(16)), isOffline, ...generateRingKey(kem) };
}

interface FakeAppliance {
  readonly client: Pick<Client, 'encrypt' | 'decrypt'>;
  readonly calls: unknown[];
}

/** An appliance that keeps to the interface; decrypts for the rings named in `forbidden` are refused. */
function appliance(rings: readonly TestRing[], forbidden: readonly string[] = []): FakeAppliance {
  const calls: unknown[] = [];
  const key = { id: idFromBytes('key', systemRandom(16)), type: 'aes256' as const, kem: 'x25519' as const, props: {} };
  return {
    calls,
    client: {
      async encrypt({ ringname, recipient }) {
        calls.push(['encrypt', ringname]);
        const found = rings.find(({ name }) => name === ringname.toLowerCase()) ?? assert.fail('no such ring');
        const sealed = sealKeyHash(sealing, found.id, key.id, systemRandom);
        const { hash } = sealed;
        if (!recipient) {
          const publicKey = parsePublicKey(found.publicKey) ?? assert.fail('no key');
          const { wrapped: value, iv } = wrapRingKey('ks', publicKey, key.id, secret, systemRandom);
          const keyData = { encrypted: { key: { value, encoding: 'base64' as const } }, iv };
          return { key: { ...key, keyData }, ringId: found.id, hash, header: encodeHeader(sealing, sealed) };
        }
        const use = { isRecipient: true, isOffline: found.isOffline };
        const header = encodeHeader(sealing, { ...sealed, use });
        const share = toBase64(shareOf(sealing, header));
        return { key, ringId: found.id, hash, header, share, publicKey: found.publicKey };
      },
      async decrypt({ header = '' } = {}) {
        const decoded = decodeHeader(sealing, header);
        const found = rings.find(({ id }) => id === decoded?.reference?.ringId);
        calls.push(['decrypt', found?.name]);
        if (!decoded?.intact || !found) throw new KmsError('invalid', 'the header was altered');
        if (forbidden.includes(found.name)) throw new KmsError('forbidden', `needs keyring.${found.name}.decrypt`);
        const share = decoded.isRecipient ? { share: toBase64(shareOf(sealing, header)) } : {};
        return { ringId: found.id, ringname: found.name, key, ...share };
      },
    },
  };
}

const payroll = ring('payroll');
const vault = ring('vault', true);
const backup = ring('backup');
const message = utf8('what nobody else is to read');
const { client } = appliance([payroll, vault, backup]);
const keyOf = ({ publicKey }: { readonly publicKey: string }): string => publicKey;
const sealTo = (rings: string | readonly string[], more: Partial<EncryptStreamOptions> = {}) =>
  encryptBytes(message, { client, ring: rings, publicKey: keyOf, ...more });
const open = (file: Uint8Array, privateKey: DecryptStreamOptions['privateKey'], from = client) =>
  decryptBytes(file, { client: from, privateKey });

async function openAlone(file: Uint8Array, privateKey: string): Promise<Uint8Array> {
  const keys = readPrivateKeys(privateKey, 'it');
  const key = async (prelude: Parameters<typeof openOffline>[0]) => (await openOffline(prelude, keys)).fileKey;
  const { bytes, error } = await collect(decryptFile({ source: inPieces(file), key }));
  if (error === undefined) return bytes;
  assert.equal(bytes.length, 0);
  throw error;
}

test('who has the public key writes, who has the private key and the appliance reads, and nobody keeps the share', async () => {
  const { bytes: file, answer } = await sealTo('payroll', { publicKey: payroll.publicKey });
  assert.deepEqual([answer.ringId, answer.share, answer.key.keyData], [payroll.id, undefined, undefined]);
  for (const privateKey of [payroll.privateKey, () => payroll.privateKey]) {
    const opened = await open(file, privateKey);
    assert.deepEqual(opened.bytes, message);
    assert.deepEqual([opened.answer.ringname, opened.answer.share], ['payroll', undefined]);
  }
  const { fileVersion, headers, contentSize } = await inspectFile(inPieces(file));
  assert.deepEqual([fileVersion, headers.length, contentSize], [2, 1, message.length]);
  // If the file's size is known, its beginning suffices.
  assert.deepEqual(await inspectFile(inPieces(file), file.length), await inspectFile(inPieces(file)));
  for (const size of [0, file.length - message.length - 1]) {
    assert.equal((await inspectFile(inPieces(file), size)).contentSize, undefined);
  }
  assert.deepEqual([headers[0]?.isRecipient, headers[0]?.isOffline, headers[0]?.kem], [true, false, 0x0020]);
});

test('a stolen private key opens nothing alone, and an appliance opens nothing at all', async () => {
  const { bytes: file } = await sealTo('payroll');
  await assert.rejects(openAlone(file, payroll.privateKey), { code: 'refused' });
  const { client: refusing, calls } = appliance([payroll], ['payroll']);
  await assert.rejects(open(file, payroll.privateKey, refusing), { code: 'forbidden' });
  // A malicious appliance has the share, and may have every private key but the right one.
  for (const { privateKey } of [vault, backup, generateRingKey()]) {
    await assert.rejects(open(file, privateKey), (error) => faultOf(error) === 'wrong-private-key');
  }
  assert.deepEqual(calls, [['decrypt', 'payroll']]);
});

test('rings of both kinds, and a ring that changed its pair, open what was sealed to them', async () => {
  const hybrid = ring('hybrid', true, 'mlkem768-x25519');
  const { client: both } = appliance([payroll, hybrid]);
  const { bytes: file } = await sealTo(['payroll', 'hybrid'], { client: both });
  const { headers } = await inspectFile(inPieces(file));
  assert.deepEqual(
    headers.map(({ kem }) => kem),
    [0x0020, 0x647a],
  );
  const before = generateRingKey().privateKey;
  for (const privateKey of [payroll.privateKey, hybrid.privateKey, `${before}${hybrid.privateKey}`]) {
    assert.deepEqual((await open(file, privateKey, both)).bytes, message);
  }
  assert.deepEqual(await openAlone(file, `${before}${hybrid.privateKey}`), message);
  const stranger = generateRingKey('mlkem768-x25519').privateKey;
  await assert.rejects(open(file, stranger, both), (error) => faultOf(error) === 'wrong-private-key');
});

test('each bit of the beginning and of the body that is changed is found, and nothing comes out', async () => {
  const { bytes: file } = await sealTo(['payroll', 'vault']);
  const prelude = (await readPrelude(inPieces(file))).context.length;
  const privateKey = readPrivateKeys(payroll.privateKey, 'it');
  for (let at = 0; at < file.length; at++) {
    // Every bit of the lengths, one bit of every other byte: bits within a field behave alike.
    const bits = at < 14 || (at > 128 && at < 136) ? [0, 1, 2, 3, 4, 5, 6, 7] : [at % 8];
    for (const bit of bits) {
      const changed = file.with(at, (file[at] ?? 0) ^ (1 << bit));
      const options = { client, privateKey };
      const error: unknown = await decryptBytes(changed, options).catch((thrown) => thrown);
      assert.ok(error instanceof KmsError && ['invalid', 'corrupt'].includes(error.code), `byte ${at}: ${error}`);
      if (at >= prelude + 56) assert.equal(faultOf(error), 'altered');
      else if (at >= prelude) assert.equal(faultOf(error), 'wrong-key');
    }
  }
  for (let length = 0; length < file.length; length++) {
    const error: unknown = await open(file.subarray(0, length), payroll.privateKey).catch((thrown) => thrown);
    assert.ok(faultOf(error) !== undefined, `cut at ${length}: ${error}`);
  }
});

test('a file for several rings opens with any one of them, in the order of the file', async () => {
  const { bytes: file, answer } = await sealTo(['payroll', 'vault', 'backup']);
  assert.equal(answer.ringId, payroll.id);
  for (const each of [payroll, vault, backup]) {
    const { client: asked, calls } = appliance([payroll, vault, backup]);
    assert.deepEqual((await open(file, each.privateKey, asked)).bytes, message);
    assert.deepEqual(calls, [['decrypt', each.name]], 'of the others it is not asked');
  }
  // If the private key is looked up by the ring's name, the rings are tried until one opens.
  const { client: asked, calls } = appliance([payroll, vault, backup], ['payroll']);
  const lookUp = ({ ringname }: { readonly ringname: string }): string => {
    if (ringname === 'backup') return backup.privateKey;
    throw new KmsError('refused', `there is no private key of ${ringname}`);
  };
  assert.equal((await open(file, lookUp, asked)).answer.ringname, 'backup');
  assert.deepEqual(calls, [
    ['decrypt', 'payroll'],
    ['decrypt', 'vault'],
    ['decrypt', 'backup'],
  ]);
  const { client: none } = appliance([payroll, vault, backup], ['payroll', 'vault', 'backup']);
  await assert.rejects(
    open(file, lookUp, none),
    /none of the file's rings opens it: needs keyring.payroll.decrypt; needs keyring.vault.decrypt; needs keyring.backup/,
  );
  // An error that would be the same for all rings is reported at once.
  const sealed = { ...none, decrypt: () => Promise.reject(new KmsError('sealed', 'the appliance is sealed')) };
  await assert.rejects(open(file, lookUp, sealed), { code: 'sealed', message: 'the appliance is sealed' });
});

test('of a ring whose KEM is not known here the appliance is not asked, and it is said', async () => {
  const { bytes: file } = await sealTo(['payroll', 'vault']);
  const { context, stanzas } = await readPrelude(inPieces(file));
  const [first, second] = stanzas;
  if (!first || !second) return assert.fail('expected two stanzas');
  const unknown = { ...first, kem: 0x7fff };
  const rewritten = (...changed: readonly (typeof first)[]) =>
    concatBytes(encodePrelude(changed), file.subarray(context.length));
  const lookUp = ({ ringname }: { readonly ringname: string }): string => {
    throw new KmsError('refused', `there is no private key of ${ringname}`);
  };
  for (const [privateKey, asked, message] of [
    [lookUp, [['decrypt', 'vault']], 'there is no private key of vault'],
    [backup.privateKey, [], fileFault('wrong-private-key').message],
  ] as const) {
    const { client, calls } = appliance([payroll, vault]);
    const error: unknown = await open(rewritten(unknown, second), privateKey, client).catch((thrown) => thrown);
    assert.deepEqual(Object(error).message, message);
    assert.equal(Object(error).hint, 'a newer version of kms knows the KEM of another of its rings');
    assert.deepEqual(calls, asked);
  }
  for (const privateKey of [lookUp, payroll.privateKey]) {
    const { client, calls } = appliance([payroll, vault]);
    await assert.rejects(open(rewritten(unknown, { ...second, kem: 0x7fff }), privateKey, client), {
      message: /is sealed by a KEM, that this program does not know/,
      hint: 'use a newer version of kms',
    });
    assert.deepEqual(calls, []);
  }
});

test('up to 20 rings, each once, and an asset for one alone', async () => {
  const twenty = Array.from({ length: 20 }, (_, n) => ring(`r${n}`));
  const { client } = appliance(twenty);
  const ringNames = twenty.map(({ name }) => name);
  const { bytes: file } = await sealTo(ringNames, { client });
  const last = twenty[19] ?? assert.fail();
  assert.deepEqual((await open(file, last.privateKey, client)).bytes, message);
  const refused = (rings: readonly string[], more: object = {}) =>
    assert.rejects(sealTo(rings, { client, ...more }), { code: 'invalid' });
  await refused([...ringNames, 'r20']);
  await refused([]);
  await refused(['r0', 'R0']);
  await refused(['r0', 'r1'], { asset: { data: {} } });
  const { privateKey } = last;
  await assert.rejects(encryptBytes(message, { client, ring: ['r0'], privateKey }), { code: 'invalid' });
  await assert.rejects(sealTo('r0', { client, privateKey }), /privateKey or publicKey, got both/);
});

test('an appliance that puts in another public key is refused, and so is one that knows nothing of this', async () => {
  const hostile = (changed: object): Pick<Client, 'encrypt'> => ({
    encrypt: async (input) => ({ ...(await client.encrypt(input)), ...changed }),
  });
  const other = generateRingKey().publicKey;
  for (const publicKey of [other, 'AAAA', '', toBase64(new Uint8Array(32))]) {
    const refused = sealTo('payroll', { client: hostile({ publicKey }), publicKey: payroll.publicKey });
    await assert.rejects(refused, { code: 'refused' });
  }
  for (const publicKey of ['nonsense', '', () => '']) {
    await assert.rejects(sealTo('payroll', { publicKey }), { code: 'invalid' });
  }
  for (const changed of [{ share: undefined }, { share: 'AAAA' }, { publicKey: undefined }, { header: 'AQAB' }]) {
    await assert.rejects(sealTo('payroll', { client: hostile(changed) }), { code: 'unavailable' });
  }
  const { header } = await client.encrypt({ ringname: 'payroll' });
  await assert.rejects(sealTo('payroll', { client: hostile({ header }) }), { code: 'unavailable' });
  // With a foreign share the writer makes a file that no key opens, rather than one that the appliance could open.
  const { bytes } = await sealTo('payroll', { client: hostile({ share: toBase64(systemRandom(32)) }) });
  await assert.rejects(open(bytes, payroll.privateKey), (error) => faultOf(error) === 'wrong-key');
  // The second of two rings is checked like the first; public keys are asked for in the order of the rings.
  const told: string[] = [];
  const publicKey = ({ ringname, publicKey }: { readonly ringname: string; readonly publicKey: string }) => {
    told.push(ringname);
    return ringname === 'vault' ? other : publicKey;
  };
  await assert.rejects(sealTo(['payroll', 'vault'], { publicKey }), /another public key for the keyring vault/);
  assert.deepEqual(told, ['payroll', 'vault']);
  const one = (answered: { readonly ringname: string; readonly publicKey: string }) =>
    answered.ringname === 'vault' ? 'nonsense' : answered.publicKey;
  await assert.rejects(sealTo(['payroll', 'vault'], { publicKey: one }), /a public key, of vault$/);
  for (const changed of [{ header: null }, { header: 5 }, { share: 5 }]) {
    // The answer may be anything.
    await assert.rejects(sealTo('payroll', { client: hostile(changed) }), { code: 'unavailable' });
  }
});

test('what is wrong with one of several rings says with which', async () => {
  const refusing = (code: ErrorCode): Pick<Client, 'encrypt'> => ({
    encrypt: async (input) => {
      if (input.ringname !== 'none') return client.encrypt(input);
      throw new KmsError(code, 'what it says', { hint: 'what to do' });
    },
  });
  const sealBoth = (code: ErrorCode) => sealTo(['payroll', 'none'], { client: refusing(code) });
  for (const code of ['not-found', 'forbidden', 'quota'] as const) {
    await assert.rejects(sealBoth(code), { code, message: 'none: what it says', hint: 'what to do' });
  }
  // An error about no particular ring is passed on unchanged.
  await assert.rejects(sealBoth('unavailable'), { code: 'unavailable', message: 'what it says' });
  await assert.rejects(sealTo('none', { client: refusing('not-found') }), { message: 'what it says' });
});

test('neither version passes for the other', async () => {
  const two = (await sealTo('payroll')).bytes;
  const { header, stanzas } = await readPrelude(inPieces(two));
  const downgraded = concatBytes(two.subarray(0, 8), Uint8Array.of(1), two.subarray(10, 12 + header.length));
  await assert.rejects(open(concatBytes(downgraded, two.subarray(-100)), payroll.privateKey), (error) => {
    return faultOf(error) === 'bad-header' || (error instanceof KmsError && error.code === 'invalid');
  });
  const one = await encryptBytes(message, { client, ring: 'payroll', privateKey: payroll.privateKey });
  const plain = await readPrelude(inPieces(one.bytes));
  const [stanza] = stanzas;
  const upgraded = concatBytes(
    utf8('kms-file'),
    Uint8Array.of(2, 1, 0, plain.header.length),
    utf8(plain.header),
    two.subarray(12 + header.length),
  );
  assert.ok(stanza);
  await assert.rejects(open(upgraded, payroll.privateKey), (error) => faultOf(error) === 'wrong-private-key');
  await assert.rejects(
    open(upgraded, () => payroll.privateKey),
    (error) => faultOf(error) === 'wrong-private-key',
  );
  await assert.rejects(openAlone(one.bytes, payroll.privateKey), { code: 'refused' });
});

test('as the library offers it, offline needs no client and tells the header of the ring that opened the file', async () => {
  const { bytes: file } = await sealTo(['payroll', 'vault']);
  const { stanzas } = await readPrelude(inPieces(file));
  const offline = (bytes: Uint8Array, privateKey: string) => decryptBytes(bytes, { offline: true, privateKey });
  const { bytes, answer } = await offline(file, vault.privateKey);
  assert.deepEqual([bytes, answer], [message, { header: stanzas[1]?.header }]);
  const stream = decryptStream({ offline: true, privateKey: vault.privateKey });
  const piped = new Response(new Blob([new Uint8Array(file)]).stream().pipeThrough(stream));
  assert.deepEqual(new Uint8Array(await piped.arrayBuffer()), message);
  assert.deepEqual(await stream.answer, answer);
  await assert.rejects(offline(file, payroll.privateKey), { code: 'refused', message: /without the appliance$/ });
  await assert.rejects(offline(file, backup.privateKey), (error) => faultOf(error) === 'wrong-private-key');
  const one = await encryptBytes(message, { client, ring: 'vault', privateKey: vault.privateKey });
  await assert.rejects(offline(one.bytes, vault.privateKey), { code: 'refused' });
  await assert.rejects(offline(file.subarray(0, -1), vault.privateKey), (error) => faultOf(error) === 'altered');
  assert.throws(() => decryptStream({ offline: true, privateKey: 'nonsense' }), { code: 'invalid' });
  // An untyped program may pass a function that looks the key up by ring, but offline the ring's name is unknown.
  const lookUp = { offline: true, privateKey: () => vault.privateKey };
  await assert.rejects(Reflect.apply(decryptBytes, undefined, [file, lookUp]), { code: 'invalid' });
  // Without `offline` the appliance is asked.
  const { client: asked, calls } = appliance([payroll, vault]);
  const options = { client: asked, privateKey: vault.privateKey, offline: false } as const;
  assert.deepEqual((await decryptBytes(file, options)).bytes, message);
  assert.deepEqual(calls, [['decrypt', 'vault']]);
});

test('a file opens offline where its ring allowed that, by the private key alone', async () => {
  const { bytes: file } = await sealTo(['payroll', 'vault']);
  assert.deepEqual(await openAlone(file, vault.privateKey), message);
  await assert.rejects(openAlone(file, payroll.privateKey), { code: 'refused' });
  await assert.rejects(openAlone(file, backup.privateKey), (error) => faultOf(error) === 'wrong-private-key');
  // With the appliance it opens like any other file.
  assert.deepEqual((await open(file, vault.privateKey)).bytes, message);
  const prelude = (await readPrelude(inPieces(file))).context.length;
  for (let at = 8; at < prelude + 56; at++) {
    const changed = file.with(at, (file[at] ?? 0) ^ (1 << (at % 8)));
    const error: unknown = await openAlone(changed, vault.privateKey).catch((thrown) => thrown);
    assert.ok(faultOf(error) !== undefined, `byte ${at}: ${error}`);
  }
});
