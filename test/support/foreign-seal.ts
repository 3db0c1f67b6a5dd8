// Seals forged by an attacker who can write to a seal but has none of its secrets: the master key of an appliance of
// their own, wrapped to the public keys in the seal.

import { sealXChaCha } from '../../src/crypto/aead.ts';
import { concatBytes, utf8 } from '../../src/crypto/bytes.ts';
import { systemRandom } from '../../src/crypto/random.ts';
import { formatHeader, headerText, parseHeader, type SealHeader } from '../../src/seal/header.ts';
import { chainKeyOf, sealMac, wrapKeyOf } from '../../src/seal/master-key.ts';
import { type Slot, unwrapSlot, wrapForSlot } from '../../src/seal/slot.ts';

/** The attacker's own appliance: its seal, and the secret that opens it. */
export interface Own {
  readonly seal: Uint8Array;
  readonly secret: Uint8Array;
}

interface Draft {
  readonly own: SealHeader;
  readonly masterKey: Uint8Array;
  readonly victim: SealHeader;
}

type Forging = (draft: Draft) => { readonly slots: readonly Slot[]; readonly former?: SealHeader['former'] };

function chainEntry({ own, masterKey }: Draft, commitment: string, chainKey: Uint8Array): [string, Uint8Array] {
  const nonce = systemRandom(24);
  const bound = utf8(`kms/chain-key/v1/${own.applianceId}/${commitment}`);
  return [commitment, concatBytes(nonce, sealXChaCha(wrapKeyOf(masterKey), nonce, chainKey, bound))];
}

/** Slots and chain entries that an attacker may write. */
export const forgings: Readonly<Record<string, Forging>> = {
  'the slots as they stand': ({ victim }) => ({ slots: victim.slots }),
  'slots that name the new master key': ({ own, victim }) => ({
    slots: victim.slots.map((slot) => ({ ...slot, master: own.master })),
  }),
  'made-up proofs': ({ own, victim }) => ({
    slots: victim.slots.map((slot) => ({ ...slot, master: own.master, proof: systemRandom(32) })),
  }),
  'the chain as it stands': ({ victim }) => ({
    slots: victim.slots,
    former: new Map([...victim.former, [victim.master, systemRandom(72)]]),
  }),
  'a chain with a key of their own': (draft) => ({
    slots: draft.victim.slots,
    former: new Map(draft.victim.slots.map(({ master }) => chainEntry(draft, master, chainKeyOf(draft.masterKey)))),
  }),
  'other params': ({ victim }) => ({
    slots: victim.slots.map((slot) => ({ ...slot, params: { ...slot.params, more: 'than there was' } })),
  }),
};

/** The seal of the attacker's appliance, made to look like one for the victim's custodians. */
export function forgedSeal(own: Own, victim: Uint8Array, forging: Forging): Uint8Array {
  const header = parseHeader(own.seal, 'own').header;
  const [slot] = header.slots;
  const masterKey = slot && unwrapSlot(slot, header.applianceId, slot.wrapped, own.secret);
  if (!masterKey) throw new Error('the secret is not that of the first slot');
  const draft = { own: header, masterKey, victim: parseHeader(victim, 'victim').header };
  const { slots, former = new Map() } = forging(draft);
  const forged = {
    ...header,
    former,
    slots: slots.map((each) => ({
      ...each,
      wrapped: wrapForSlot(each, header.applianceId, masterKey, systemRandom),
    })),
  };
  return formatHeader(forged, sealMac(masterKey, headerText(forged)));
}
