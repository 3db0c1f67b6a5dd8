// Routes of managed keys. Where an operation's work may take long, it is rehearsed first, and the work done elsewhere.
import type { Answer, Body, EndpointId, EndpointOf, Sent } from '../../api/endpoints.ts';
import type { KeyItem, keyOperationEndpoints } from '../../api/key-operations.ts';
import type { keyToolEndpoints } from '../../api/key-tools.ts';
import type { managedKeyEndpoints } from '../../api/managed-keys.ts';
import type { Caller, Context } from '../../core/context.ts';
import {
  addManagedKeyAlias,
  listManagedKeyDependents,
  removeManagedKeyAlias,
  setManagedKeyState,
  trimManagedKey,
} from '../../core/key-changes.ts';
import { exportManagedKey } from '../../core/key-export.ts';
import {
  decryptWithKey,
  encryptWithKey,
  generateDataKey,
  generateWrappedDataKey,
  needsSlices,
  rewrapWithKey,
} from '../../core/key-operations.ts';
import { isLongWork, rehearse, type WorkKind } from '../../core/key-rehearsal.ts';
import {
  deriveWithKey,
  macWithKey,
  signWithKey,
  unwrapWithKey,
  verifyWithKey,
  wrapWithKey,
} from '../../core/key-signatures.ts';
import { generateRandom, hashMessage } from '../../core/key-tools.ts';
import { eraseKeyMaterial, getWrappingKey, importManagedKey } from '../../core/key-transfer.ts';
import { inPlace, type KeyWork } from '../../core/key-work.ts';
import { lookUpManagedKey } from '../../core/managed-key-names.ts';
import {
  configureManagedKey,
  createManagedKey,
  deleteManagedKey,
  getManagedKey,
  listManagedKeys,
  restoreManagedKey,
  rotateManagedKey,
} from '../../core/managed-keys.ts';
import { KmsError } from '../../errors.ts';
import type { KeyType } from '../../model/key-types.ts';
import type { Slices } from '../../store/sql.ts';
import { type Aside, atOnce, type Input, listed, type RoutesOf } from '../route.ts';

type InputOf<Id extends EndpointId> = Input<EndpointOf<Id>>;
type Made<Id extends EndpointId> = Sent<Answer<Id>>;

/** A route whose operation is rehearsed where its work takes long. */
function rehearsed<Id extends EndpointId>(
  operation: (ctx: Context, input: InputOf<Id>, work: KeyWork) => Slices<Made<Id>>,
  takesLong: (input: InputOf<Id>, type: KeyType | undefined) => boolean,
) {
  return {
    isNeeded: (input: InputOf<Id>) => takesLong(input, typeOf(input)),
    async prepare(input: InputOf<Id>, caller: Caller, aside: Aside) {
      const { handle, open, appliance, dialect, isLocal } = input;
      const { tenant, store } = handle;
      const { work, wipe } = await rehearse({
        actors: { caller, tenant, world: appliance.world, dialect, isLocal },
        worker: { run: (orders, from) => aside(() => open.keyWorker.run(orders, from)) },
        transactionInSlices: (run) => store.transactionInSlices(run),
        operation: (ctx, orders) => operation(ctx, input, orders),
      });
      return {
        *slices(ctx: Context) {
          try {
            return yield* operation(ctx, input, work);
          } finally {
            wipe();
          }
        },
      };
    },
  };
}

/** The same for an operation that may be too long for one turn of the event loop. */
function sliced<Id extends EndpointId>(
  operation: (ctx: Context, input: InputOf<Id>, work: KeyWork) => Slices<Made<Id>>,
  takesLong: (input: InputOf<Id>, type: KeyType | undefined) => boolean,
  isNeeded: (input: InputOf<Id>) => boolean,
) {
  const slices = (ctx: Context, input: InputOf<Id>) => operation(ctx, input, inPlace(ctx.world));
  return {
    ...rehearsed<Id>(operation, takesLong),
    inPlace: (ctx: Context, input: InputOf<Id>) => atOnce(slices(ctx, input)),
    inSlices: { isNeeded, slices },
  };
}

/** The same for one that never is. */
function worked<Id extends EndpointId>(
  operation: (ctx: Context, input: InputOf<Id>, work: KeyWork) => Made<Id>,
  takesLong: (input: InputOf<Id>, type: KeyType | undefined) => boolean,
) {
  const inOneGo = function* (ctx: Context, input: InputOf<Id>, work: KeyWork): Slices<Made<Id>> {
    yield;
    return operation(ctx, input, work);
  };
  return {
    ...rehearsed<Id>(inOneGo, takesLong),
    inPlace: (ctx: Context, input: InputOf<Id>) => operation(ctx, input, inPlace(ctx.world)),
  };
}

/** The type of the key in the path; undefined if there is none, or the store cannot tell at once. */
function typeOf<E>({ params, handle: { store } }: Input<E>): KeyType | undefined {
  const ref: unknown = Reflect.get(params as object, 'key');
  if (typeof ref !== 'string') return undefined;
  try {
    return store.read((tables) => lookUpManagedKey(tables, ref)?.type);
  } catch (error) {
    if (error instanceof KmsError && error.code === 'unavailable') return undefined;
    throw error;
  }
}

/** The type that a key is taken to have that this node does not know: another may have just made one that is slow. */
const unknownType: KeyType = 'rsa-4096';

/** A route of work with the key in the path. */
function working<Id extends (typeof keyOperationEndpoints)[number]['id']>(
  kind: WorkKind,
  operation: (ctx: Context, input: { key: string } & Body<Id>, work: KeyWork) => Made<Id>,
) {
  return worked<Id>(
    // Cast: every operation has the key in its path, and a body.
    (ctx, { params, body }, work) =>
      operation(ctx, { ...(body as object), ...(params as object) } as { key: string } & Body<Id>, work),
    ({ body }, type = unknownType) => isLongWork(type, kind, body as object),
  );
}

/** A route of work with the key in the path that takes `items`, which are in slices if there are many. */
function batched<Id extends BatchId>(
  kind: WorkKind,
  operation: (ctx: Context, input: { key: string } & Body<Id>, work: KeyWork) => Slices<Made<Id>>,
) {
  const run = (ctx: Context, { params, body }: InputOf<Id>, work: KeyWork) =>
    // Cast: every operation has the key in its path, and a body.
    operation(ctx, { ...(body as object), ...(params as object) } as { key: string } & Body<Id>, work);
  const itemsOf = ({ body }: InputOf<Id>): readonly KeyItem[] =>
    // Cast: the body of each of them, of which `items` may be absent.
    (body as { readonly items?: readonly KeyItem[] }).items ?? [];
  return sliced<Id>(
    run,
    ({ body }, type = unknownType) => isLongWork(type, kind, body as object),
    (input) => needsSlices(itemsOf(input)),
  );
}

type BatchId = Extract<
  (typeof keyOperationEndpoints)[number],
  { readonly body: { readonly shape: { readonly items: unknown } } }
>['id'];

const isRsaType = (type: unknown): boolean => typeof type === 'string' && type.startsWith('rsa-');

export const managedKeyRoutes: RoutesOf<
  (typeof managedKeyEndpoints | typeof keyOperationEndpoints | typeof keyToolEndpoints)[number]['id']
> = {
  createManagedKey: worked<'createManagedKey'>(
    (ctx, { body }, work) => createManagedKey(ctx, body, work),
    ({ body }) => isRsaType(body.type),
  ),
  listManagedKeys: listed((reader, { query, page, item }) =>
    listManagedKeys(reader, {
      which: query.deleted === 'true' ? 'deleted' : query.pending === 'true' ? 'both' : 'living',
      secrets: query.secrets !== 'false',
      kmip: query.kmip === 'true',
      page,
      item,
    }),
  ),
  getWrappingKey: worked<'getWrappingKey'>(
    (ctx, { query }, work) => getWrappingKey(ctx, query, work),
    () => true,
  ),
  generateRandom: (ctx, { body }) => generateRandom(ctx, body),
  hashMessage: (ctx, { body }) => hashMessage(ctx, body),
  // In one answer, so that a page about the key is one record.
  getManagedKey: (ctx, { params, query }) => ({
    ...getManagedKey(ctx, params),
    ...(query.dependents && listManagedKeyDependents(ctx, params)),
  }),
  deleteManagedKey: (ctx, { params, body }) => deleteManagedKey(ctx, { ...body, ...params }),
  restoreManagedKey: (ctx, { params, query }) =>
    restoreManagedKey(ctx, { ...params, suspended: query.suspended === 'true' }),
  rotateManagedKey: worked<'rotateManagedKey'>(
    (ctx, { params }, work) => rotateManagedKey(ctx, params, work),
    (_input, type) => isRsaType(type),
  ),
  configureManagedKey: (ctx, { params, body }) => configureManagedKey(ctx, { ...body, ...params }),
  setManagedKeyState: (ctx, { params, body }) => setManagedKeyState(ctx, { ...body, ...params }),
  addManagedKeyAlias: (ctx, { params, body }) => addManagedKeyAlias(ctx, { ...body, ...params }),
  removeManagedKeyAlias: (ctx, { params }) => removeManagedKeyAlias(ctx, params),
  trimManagedKey: (ctx, { params, body }) => trimManagedKey(ctx, { ...body, ...params }),
  listManagedKeyDependents: (ctx, { params, query }) => listManagedKeyDependents(ctx, { ...query, ...params }),
  importManagedKey: worked<'importManagedKey'>(
    (ctx, { params, body }, work) => importManagedKey(ctx, { ...body, ...params }, work),
    ({ body }, type) => body.wrapped !== undefined || isRsaType(type ?? body.type),
  ),
  eraseKeyMaterial: (ctx, { params }) => eraseKeyMaterial(ctx, params),
  exportManagedKey: sliced<'exportManagedKey'>(
    (ctx, { params, body }, work) => exportManagedKey(ctx, { ...body, ...params }, work),
    ({ body }) => body.plaintext !== true,
    ({ body }) => body.allVersions === true,
  ),
  encryptWithKey: batched<'encryptWithKey'>('encrypt', encryptWithKey),
  decryptWithKey: batched<'decryptWithKey'>('make', decryptWithKey),
  rewrapWithKey: batched<'rewrapWithKey'>('make', rewrapWithKey),
  generateDataKey: working<'generateDataKey'>('encrypt', generateDataKey),
  generateWrappedDataKey: working<'generateWrappedDataKey'>('encrypt', generateWrappedDataKey),
  signWithKey: batched<'signWithKey'>('make', signWithKey),
  verifyWithKey: batched<'verifyWithKey'>('read', verifyWithKey),
  macWithKey: batched<'macWithKey'>('make', macWithKey),
  wrapWithKey: working<'wrapWithKey'>('make', wrapWithKey),
  unwrapWithKey: working<'unwrapWithKey'>('make', unwrapWithKey),
  deriveWithKey: working<'deriveWithKey'>('make', deriveWithKey),
};
