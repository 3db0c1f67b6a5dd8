// Rotating the master key and changing who holds it, while the appliance serves: only the seal file is written, whole. Each step is
// recorded in the log of every tenant before it is done.
import type { World } from '../../core/context.ts';
import { localCaller } from '../../core/credential.ts';
import { fromBase64Url, toBase64Url } from '../../crypto/encoding.ts';
import { invalidField } from '../../errors.ts';
import type { LocalRoute } from '../../http/deps.ts';
import type { Seal } from '../../seal/seal.ts';
import { custodianKinds, type Slot, type SlotParam, slotId } from '../../seal/slot.ts';
import { recordInTenants } from '../appliance-activity.ts';
import type { SealKeeper } from '../seal-keeper.ts';
import type { Tenants } from '../tenants.ts';

export interface MasterAdminDeps {
  readonly seal: SealKeeper;
  readonly tenants: Tenants;
  readonly world: World;
}

/** What `kms master list` shows. */
export interface MasterAnswer {
  readonly fingerprint: string;
  readonly custodians: readonly CustodianAnswer[];
}

export interface CustodianAnswer {
  readonly id: string;
  readonly kind: Slot['kind'];
  readonly params: Slot['params'];
}

/** A custodian as it is sent: the secret stays with whoever made it. */
export interface NewSlot {
  readonly kind: Slot['kind'];
  readonly params: Slot['params'];
  readonly publicKey: string;
}

export function sentSlot({ kind, params, publicKey }: Slot): NewSlot {
  return { kind, params, publicKey: toBase64Url(publicKey) };
}

/** GET `/local/master`, POST `/local/master/rotate` and `/local/master/custodians`, DELETE `/local/master/custodians/{id}`. */
export function masterRoutes(deps: MasterAdminDeps): readonly LocalRoute[] {
  const { seal } = deps;
  const change = async (operation: string, props: object, next: (seal: Seal) => Seal): Promise<MasterAnswer> => {
    // What cannot be done is not recorded as done.
    next(seal.current);
    await recordInTenants(deps.tenants, deps.world, {
      action: 'system.master',
      keyid: localCaller.id,
      props: { operation, ...props },
    });
    await seal.change(next);
    return masterAnswer(seal.current);
  };
  const path = '/local/master';
  return [
    { method: 'GET', path, handle: async () => masterAnswer(seal.current) },
    {
      method: 'POST',
      path: `${path}/rotate`,
      handle: () => change('rotate', {}, (current) => current.withNewMaster()),
    },
    {
      method: 'POST',
      path: `${path}/custodians`,
      async handle({ body }) {
        const slot = slotOf(body);
        return change('add-custodian', { custodian: slot.id, kind: slot.kind }, (current) => current.withSlot(slot));
      },
    },
    {
      method: 'DELETE',
      path: `${path}/custodians/{id}`,
      handle: ({ params: { id = '' } }) =>
        change('remove-custodian', { custodian: id }, (current) => current.withoutSlot(id)),
    },
  ];
}

export function masterAnswer({ fingerprint, slots }: Pick<Seal, 'fingerprint' | 'slots'>): MasterAnswer {
  return { fingerprint, custodians: slots.map(({ id, kind, params }) => ({ id, kind, params })) };
}

function slotOf(body: Readonly<Record<string, unknown>>): Slot {
  const kind = custodianKinds.find((known) => known === body.kind);
  if (!kind) throw invalidField('kind', `expected one of ${custodianKinds.join(', ')}`);
  const publicKey = typeof body.publicKey === 'string' ? fromBase64Url(body.publicKey) : undefined;
  if (publicKey?.length !== 32) throw invalidField('publicKey', 'expected 32 bytes in base64url');
  const { params } = body;
  if (!isParams(params)) throw invalidField('params', 'expected an object of texts, numbers and lists of texts');
  return { id: slotId(publicKey), kind, params, publicKey };
}

function isParams(value: unknown): value is Slot['params'] {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return false;
  return Object.values(value).every(isParam);
}

function isParam(value: unknown): value is SlotParam {
  if (typeof value === 'string' || typeof value === 'number') return true;
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}
