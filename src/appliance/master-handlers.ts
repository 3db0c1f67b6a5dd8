// Rotating the master key and changing its custodians, while the appliance serves: only the seal file is written,
// atomically. Each step is recorded in the log of every tenant before it is done.
import type { MasterAnswer } from '../api/local/master.ts';
import type { World } from '../core/context.ts';
import { localCaller } from '../core/credential.ts';
import { fromBase64Url, toBase64Url } from '../crypto/bytes.ts';
import { isUsableXWingKey } from '../crypto/x-wing.ts';
import type { SealKeeper } from '../custody/seal-keeper.ts';
import { invalidField } from '../errors.ts';
import type { LocalHandlers } from '../http/appliance-port.ts';
import type { ActivityDetails } from '../model/activity-details.ts';
import type { Seal } from '../seal/seal.ts';
import { type Custodian, proofLength, type Slot, slotFor, slotId } from '../seal/slot.ts';
import { recordInTenants, type Tenants } from '../storage/served-tenants.ts';

interface MasterAdminDeps {
  readonly seal: SealKeeper;
  readonly tenants: Tenants;
  readonly world: World;
}

/** A slot as it is sent: the secret stays with its maker. */
interface NewSlot extends Pick<Slot, 'kind' | 'params' | 'master'> {
  readonly publicKey: string;
  readonly proof: string;
}

/** Makes the custodian's proof for that master key, and wipes the proof key. */
export function sentSlot(
  custodian: Custodian,
  { applianceId, master }: Pick<MasterAnswer, 'applianceId' | 'master'>,
): NewSlot {
  const { kind, params, publicKey, proof } = slotFor(custodian, applianceId, master);
  custodian.proofKey.fill(0);
  return { kind, params, publicKey: toBase64Url(publicKey), master, proof: toBase64Url(proof) };
}

type MasterHandlers = Pick<LocalHandlers, 'getMaster' | 'rotateMaster' | 'addCustodian' | 'removeCustodian'>;

export function masterHandlers(deps: MasterAdminDeps): MasterHandlers {
  const { seal } = deps;
  const change = async (
    operation: string,
    props: object,
    deed: ActivityDetails,
    next: (seal: Seal) => Seal,
  ): Promise<MasterAnswer> => {
    // Tried first, so that an impossible change is not recorded.
    next(seal.current);
    await recordInTenants(deps.tenants, deps.world, {
      action: 'system.master',
      keyid: localCaller.id,
      props: { operation, ...props },
      deed,
    });
    await seal.change(next);
    return masterAnswer(seal.current);
  };
  return {
    getMaster: async () => masterAnswer(seal.current),
    rotateMaster: () => change('rotate', {}, {}, (current) => current.withNewMaster()),
    async addCustodian({ body }) {
      const slot = slotOf(body);
      const props = { custodian: slot.id, kind: slot.kind };
      return change('add-custodian', props, custodianDeed(slot), (current) => current.withSlot(slot));
    },
    removeCustodian({ params: { id } }) {
      const slot = seal.current.slots.find((each) => each.id === id);
      const deed = slot ? custodianDeed(slot) : {};
      return change('remove-custodian', { custodian: id }, deed, (current) => current.withoutSlot(id));
    },
  };
}

function custodianDeed({ id, kind }: Pick<Slot, 'id' | 'kind'>): ActivityDetails {
  return { object: { type: 'custodian', id, name: kind } };
}

function masterAnswer({ applianceId, fingerprint, master, slots }: Seal): MasterAnswer {
  const custodians = slots.map(({ id, kind, params }) => ({ id, kind, params }));
  return { applianceId, fingerprint, master, custodians };
}

function slotOf({ kind, params, publicKey: text, master, proof: proofText }: NewSlot): Slot {
  const publicKey = fromBase64Url(text) ?? new Uint8Array();
  if (!isUsableXWingKey(publicKey)) throw invalidField('publicKey', 'expected an X-Wing public key in base64url');
  const proof = fromBase64Url(proofText);
  if (proof?.length !== proofLength) throw invalidField('proof', `expected ${proofLength} bytes in base64url`);
  return { id: slotId(publicKey), kind, params, publicKey, master, proof };
}
