// Rotating the master key and changing who holds it, while the appliance serves: only the seal file is written, whole.
// Each step is recorded in the log of every tenant before it is done.
import type { MasterAnswer } from '../../api/local/master.ts';
import type { World } from '../../core/context.ts';
import { localCaller } from '../../core/credential.ts';
import { fromBase64Url, toBase64Url } from '../../crypto/bytes.ts';
import { isUsableXWingKey } from '../../crypto/x-wing.ts';
import { isUsablePublicKey } from '../../crypto/x25519.ts';
import { invalidField } from '../../errors.ts';
import type { LocalHandlers } from '../../http/appliance.ts';
import type { Deed } from '../../model/deed.ts';
import type { Seal } from '../../seal/seal.ts';
import { publicKeyLengths, type Slot, slotId } from '../../seal/slot.ts';
import type { SealKeeper } from '../seal-keeper.ts';
import { recordInTenants, type Tenants } from '../tenants.ts';

interface MasterAdminDeps {
  readonly seal: SealKeeper;
  readonly tenants: Tenants;
  readonly world: World;
}

/** A custodian as it is sent: the secret stays with whoever made it. */
interface NewSlot {
  /** For a public key of X-Wing; that of X25519, as earlier programs send it, tells the id. */
  readonly id?: string;
  readonly kind: Slot['kind'];
  readonly params: Slot['params'];
  readonly publicKey: string;
}

export function sentSlot({ id, kind, params, publicKey }: Slot): NewSlot {
  return { id, kind, params, publicKey: toBase64Url(publicKey) };
}

type MasterHandlers = Pick<LocalHandlers, 'getMaster' | 'rotateMaster' | 'addCustodian' | 'removeCustodian'>;

export function masterHandlers(deps: MasterAdminDeps): MasterHandlers {
  const { seal } = deps;
  const change = async (
    operation: string,
    props: object,
    deed: Deed,
    next: (seal: Seal) => Seal,
  ): Promise<MasterAnswer> => {
    // What cannot be done is not recorded as done.
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

function custodianDeed({ id, kind }: Pick<Slot, 'id' | 'kind'>): Deed {
  return { object: { type: 'custodian', id, name: kind } };
}

function masterAnswer({ fingerprint, slots }: Pick<Seal, 'fingerprint' | 'slots'>): MasterAnswer {
  return { fingerprint, custodians: slots.map(({ id, version, kind, params }) => ({ id, version, kind, params })) };
}

function slotOf({ id, kind, params, publicKey: text }: NewSlot): Slot {
  const publicKey = fromBase64Url(text) ?? new Uint8Array();
  if (publicKey.length === publicKeyLengths[1] && isUsablePublicKey(publicKey)) {
    return { id: slotId(publicKey), version: 1, kind, params, publicKey };
  }
  if (!isUsableXWingKey(publicKey)) throw invalidField('publicKey', 'expected an X-Wing public key in base64url');
  if (id === undefined || !/^[0-9a-f]{16}$/.test(id)) throw invalidField('id', 'expected 16 hex digits');
  return { id, version: 2, kind, params, publicKey };
}
