// Custody is mutual: a custodian's secret opens the appliance's own seals, through every rotation and change of
// custodians, and none that someone else made to the same public key.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { systemRandom } from '../../src/crypto/random.ts';
import { KmsError } from '../../src/errors.ts';
import { custodianKinds } from '../../src/model/custodian-kinds.ts';
import { formatHeader, headerText, parseHeader } from '../../src/seal/header.ts';
import { sealMac } from '../../src/seal/master-key.ts';
import { openSeal, type Seal, sealFor } from '../../src/seal/seal.ts';
import { makeCustodian, proofKeyOf, slotFor, unwrapSlot } from '../../src/seal/slot.ts';
import { forgedSeal, forgings } from '../support/foreign-seal.ts';

const isForeign = (error: unknown): boolean =>
  error instanceof KmsError &&
  error.code === 'corrupt' &&
  error.message.includes('it is not the appliance that this custodian was made for') &&
  /restore from a copy that you trust/.test(error.hint ?? '');

function newOwn() {
  const secret = systemRandom(32);
  const seal = sealFor([makeCustodian('keyfile', secret)], systemRandom)
    .withStore('system')
    .toBytes();
  return { seal, secret };
}

test('an own master key, wrapped to the public key of a custodian, is refused whatever is written beside it', () => {
  const own = newOwn();
  for (const kind of custodianKinds) {
    const [secret, other] = [systemRandom(32), systemRandom(32)];
    const first = sealFor([makeCustodian(kind, secret), makeCustodian('env', other)], systemRandom).withStore('system');
    // The second custodian's proof is for a former master key.
    const rotated = openSeal(first.toBytes(), secret, systemRandom).withNewMaster();
    for (const victim of [first, rotated]) {
      for (const [what, forging] of Object.entries(forgings)) {
        const forged = forgedSeal(own, victim.toBytes(), forging);
        for (const key of [secret, other]) {
          assert.throws(() => openSeal(forged, key, systemRandom), isForeign, `${kind}: ${what}`);
        }
      }
    }
    // With the secret itself it opens: only that is missing in the forgeries.
    const made = forgedSeal(own, first.toBytes(), ({ own: { applianceId, master }, victim }) => ({
      slots: victim.slots
        .slice(0, 1)
        .map((slot) => slotFor({ ...slot, proofKey: proofKeyOf(secret) }, applianceId, master)),
    }));
    assert.ok(openSeal(made, secret, systemRandom));
  }
});

test('what a proof covers cannot be changed by who has the master key alone', () => {
  const [secret, other] = [systemRandom(32), systemRandom(32)];
  const bytes = sealFor([makeCustodian('exec', secret, { command: '/bin/key', args: [] })], systemRandom).toBytes();
  const { header } = parseHeader(bytes, 'kms.seal');
  const slot = header.slots[0] ?? assert.fail();
  const masterKey = unwrapSlot(slot, header.applianceId, slot.wrapped, secret) ?? assert.fail();
  const elsewhere = parseHeader(sealFor([makeCustodian('exec', secret)], systemRandom).toBytes(), 'other').header;
  for (const changed of [
    { kind: 'env' as const },
    { params: { command: '/tmp/key', args: [] } },
    { params: { args: [], command: '/bin/key' } },
    { proof: slotFor(makeCustodian('exec', other), header.applianceId, header.master).proof },
    { proof: elsewhere.slots[0]?.proof ?? assert.fail() },
  ]) {
    const next = { ...header, slots: [{ ...slot, ...changed }] };
    const forged = formatHeader(next, sealMac(masterKey, headerText(next)));
    assert.throws(() => openSeal(forged, secret, systemRandom), isForeign, Object.keys(changed).join());
  }
});

interface World {
  readonly seal: Seal;
  /** Secrets of the custodians, by id. */
  readonly secrets: ReadonlyMap<string, Uint8Array>;
}

type Step = { readonly kind: 'rotate' | 'add' | 'remove' | 'store'; readonly who: number };

const steps: fc.Arbitrary<readonly Step[]> = fc.array(
  fc.record({ kind: fc.constantFrom('rotate' as const, 'add', 'remove', 'store'), who: fc.nat(20) }),
  { maxLength: 8 },
);

/** A custodian opens the seal with their secret and makes a change. */
function taken({ seal, secrets }: World, { kind, who }: Step, at: number): World {
  const all = [...secrets];
  const [id, secret] = all[who % all.length] ?? assert.fail();
  const opened = openSeal(seal.toBytes(), secret, systemRandom);
  switch (kind) {
    case 'rotate':
      return { seal: opened.withNewMaster(), secrets };
    case 'store':
      return { seal: opened.withStore(`store${at}`), secrets };
    case 'add': {
      const added = systemRandom(32);
      const custodian = makeCustodian('recovery-kit', added, { made: String(at) });
      const slot = slotFor(custodian, opened.applianceId, opened.master);
      return { seal: opened.withSlot(slot), secrets: new Map([...secrets, [slot.id, added]]) };
    }
    case 'remove':
      if (all.length === 1) return { seal: opened, secrets };
      return { seal: opened.withoutSlot(id), secrets: new Map(all.filter(([each]) => each !== id)) };
  }
}

test('through any rotations and changes of custodians, each of them opens it, and no other master key', () => {
  const own = newOwn();
  fc.assert(
    fc.property(steps, (changes) => {
      const [a, b] = [systemRandom(32), systemRandom(32)];
      const custodians = [makeCustodian('keyfile', a), makeCustodian('recovery-kit', b)] as const;
      const first = sealFor(custodians, systemRandom).withStore('system');
      const start: World = { seal: first, secrets: new Map([a, b].map((key, at) => [custodians[at]?.id ?? '', key])) };
      const { seal, secrets } = changes.reduce(taken, start);
      const bytes = seal.toBytes();
      const { header } = parseHeader(bytes, 'kms.seal');
      // Exactly those chain keys are kept that a proof needs.
      const needed = new Set(header.slots.map(({ master }) => master).filter((master) => master !== header.master));
      assert.deepEqual(new Set(header.former.keys()), needed);
      for (const secret of secrets.values()) {
        const opened = openSeal(bytes, secret, systemRandom);
        assert.equal(opened.applianceId, first.applianceId);
        assert.equal(opened.master, seal.master);
        assert.deepEqual(opened.keysFor('system').key('log'), first.keysFor('system').key('log'));
        for (const [what, forging] of Object.entries(forgings)) {
          assert.throws(() => openSeal(forgedSeal(own, bytes, forging), secret, systemRandom), isForeign, what);
        }
      }
    }),
    { numRuns: 12 },
  );
});

test('a custodian whose secret was never there again opens it after many rotations, and has the newest proof then', () => {
  const [active, kit] = [systemRandom(32), systemRandom(32)];
  let seal = sealFor([makeCustodian('env', active), makeCustodian('recovery-kit', kit)], systemRandom);
  const first = seal.master;
  for (let n = 0; n < 5; n++) seal = openSeal(seal.toBytes(), active, systemRandom).withNewMaster();
  assert.deepEqual([...parseHeader(seal.toBytes(), 'kms.seal').header.former.keys()], [first]);
  const opened = openSeal(seal.toBytes(), kit, systemRandom);
  const { header } = parseHeader(opened.toBytes(), 'kms.seal');
  assert.deepEqual([header.former.size, header.slots.map(({ master }) => master)], [0, [seal.master, seal.master]]);
});

test('a chain key that was taken out, or is that of another master key, is no proof', () => {
  const [active, kit] = [systemRandom(32), systemRandom(32)];
  const first = sealFor([makeCustodian('env', active), makeCustodian('recovery-kit', kit)], systemRandom);
  const rotated = openSeal(first.toBytes(), active, systemRandom).withNewMaster();
  const { header } = parseHeader(rotated.toBytes(), 'kms.seal');
  const slot = header.slots[0] ?? assert.fail();
  const masterKey = unwrapSlot(slot, header.applianceId, slot.wrapped, active) ?? assert.fail();
  for (const former of [new Map(), new Map([[header.master, header.former.get(first.master) ?? assert.fail()]])]) {
    const next = { ...header, former };
    const changed = formatHeader(next, sealMac(masterKey, headerText(next)));
    assert.throws(() => openSeal(changed, kit, systemRandom), isForeign);
  }
  assert.equal(openSeal(rotated.toBytes(), kit, systemRandom).fingerprint, rotated.fingerprint);
});

test('a custodian of a master key that is no longer the present one is not added', () => {
  const secret = systemRandom(32);
  const seal = sealFor([makeCustodian('env', secret)], systemRandom);
  const slot = slotFor(makeCustodian('recovery-kit', systemRandom(32)), seal.applianceId, seal.master);
  const opened = openSeal(seal.toBytes(), secret, systemRandom);
  assert.throws(() => opened.withNewMaster().withSlot(slot), { code: 'conflict', hint: 'try again' });
  assert.equal(opened.withSlot(slot).slots.length, 2);
});

test('wiping a seal that was read leaves the one that read it able to make proofs', () => {
  const secret = systemRandom(32);
  const seal = openSeal(sealFor([makeCustodian('env', secret)], systemRandom).toBytes(), secret, systemRandom);
  seal.openOther(seal.toBytes(), 'kms.seal').wipe();
  const rotated = seal.withNewMaster();
  assert.equal(openSeal(rotated.toBytes(), secret, systemRandom).fingerprint, rotated.fingerprint);
});
