// The Go programs of the developer guide; and Go's crypto/hpke, which opens messages sealed here, including slots of a
// seal, and seals messages that are opened here.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { utf8 } from '../../src/crypto/bytes.ts';
import { hkdfSha256 } from '../../src/crypto/hash.ts';
import { hpkeOpen, hpkeSeal } from '../../src/crypto/hpke.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { xWingKem, xWingPublicKey } from '../../src/crypto/x-wing.ts';
import { chainKeyOf, commitmentTo } from '../../src/seal/master-key.ts';
import { guideDesk, programOf } from './desk.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const go = process.env.KMS_GO || '/usr/local/go/bin/go';

const desk = await guideDesk();
after(() => desk[Symbol.asyncDispose]());

// The standard library is compiled once for all runs.
const env = {
  GOCACHE: join(root, 'node_modules/.cache/go'),
  GOTOOLCHAIN: 'local',
  GOPROXY: 'off',
  GO111MODULE: 'off',
};

test('the program of the guide opens a key with the standard library', async () => {
  await writeFile(desk.path('main.go'), programOf('go', desk.url));
  const said = await desk.run(go, ['run', 'main.go'], env);
  assert.equal(said, '32 bytes to encrypt with; in front of that go 119 characters\n');
});

interface Message {
  readonly Seed?: string;
  readonly PublicKey?: string;
  readonly Info: string;
  readonly Aad: string;
  readonly Enc?: string;
  readonly Ciphertext?: string;
  readonly Plaintext?: string;
}

const text = (bytes: Uint8Array): string => Buffer.from(bytes).toString('base64');
const bytes = (base64: string | null = ''): Uint8Array => new Uint8Array(Buffer.from(base64 ?? '', 'base64'));

test("what X-Wing seals here Go's crypto/hpke opens, and the other way round; slots of a seal too", async () => {
  await writeFile(desk.path('hpke.go'), readFileSync(join(root, 'test/interop/programs/go/hpke/main.go')));
  const asked: Message[] = [];
  const sealed = Array.from({ length: 20 }, (_, at) => {
    const [seed, Info, Aad, plain] = [systemRandom(32), utf8(`info ${at}`), systemRandom(at), systemRandom(32)];
    const { enc, ciphertext } = hpkeSeal(xWingPublicKey(seed), Info, Aad, plain, systemRandom, xWingKem);
    const both = { Info: text(Info), Aad: text(Aad) };
    asked.push({ ...both, Seed: text(seed), Enc: text(enc), Ciphertext: text(ciphertext) });
    asked.push({ ...both, PublicKey: text(xWingPublicKey(seed)), Plaintext: text(plain) });
    return { seed, Info, Aad, plain };
  });
  const frozen = JSON.parse(readFileSync(new URL('../compat/seal-1.json', import.meta.url), 'utf8'));
  const { appliance, slots } = JSON.parse(frozen.seal);
  for (const { id, kind, wrapped } of slots) {
    const both = Buffer.from(wrapped, 'base64url');
    asked.push({
      Seed: text(hkdfSha256(Buffer.from(frozen.secrets[kind], 'hex'), 'kms/slot/v1/mlkem768-x25519', 32)),
      Info: text(utf8('kms/slot/v1')),
      Aad: text(utf8(`${appliance}/${id}`)),
      Enc: text(both.subarray(0, 1120)),
      Ciphertext: text(both.subarray(1120)),
    });
  }
  await writeFile(desk.path('asked.json'), JSON.stringify(asked));
  const answered: Message[] = JSON.parse(await desk.run('sh', ['-c', `"${go}" run hpke.go < asked.json`], env));
  assert.equal(answered.length, 42);
  for (const [at, { seed, Info, Aad, plain }] of sealed.entries()) {
    const [opened, made] = answered.slice(2 * at, 2 * at + 2);
    assert.deepEqual(bytes(opened?.PublicKey), xWingPublicKey(seed));
    assert.deepEqual(bytes(opened?.Plaintext), plain);
    assert.deepEqual(hpkeOpen(seed, bytes(made?.Enc), Info, Aad, bytes(made?.Ciphertext), xWingKem), plain);
  }
  for (const { PublicKey, Plaintext } of answered.slice(40)) {
    assert.ok(
      slots.some(({ publicKey }: { publicKey: string }) => text(Buffer.from(publicKey, 'base64url')) === PublicKey),
    );
    assert.equal(commitmentTo(chainKeyOf(bytes(Plaintext))), frozen.master);
  }
});

test('the standard library opens the vectors of wrapped keys, hybrid ones too', async () => {
  const said = await desk.run(
    go,
    ['run', join(root, 'test/languages/ring-keys.go'), join(root, 'test/vectors/ring-keys.json')],
    env,
  );
  assert.deepEqual(said.trimEnd().split('\n'), [
    'x25519 ks true',
    'x25519 asym true',
    'mlkem768-x25519 ks true',
    'mlkem768-x25519 asym true',
  ]);
});
