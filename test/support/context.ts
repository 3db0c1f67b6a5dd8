// A whole tenant for tests of the core: a store in memory, tenant keys, a clock that moves only on request, and seeded
// randomness. Operations are called as the HTTP side calls them, each in its own transaction.
import assert from 'node:assert/strict';
import type { Caller, Context, Limits, World } from '../../src/core/context.ts';
import { localCaller } from '../../src/core/credential.ts';
import { type Reader, WrittenItems, type WrittenPage } from '../../src/core/pages.ts';
import { formatUlid, ulidGenerator } from '../../src/crypto/ulid.ts';
import { type ErrorCode, KmsError } from '../../src/errors.ts';
import { parseFlags } from '../../src/model/flags.ts';
import type { Kem } from '../../src/model/kems.ts';
import { tenantKeys } from '../../src/seal/tenant-keys.ts';
import type { Store } from '../../src/store/port.ts';
import type { Page, Slices } from '../../src/store/sql.ts';
import { tenantTables } from '../../src/store/tables/databases.ts';
import { tenantMigrations } from '../../src/store/tables/migrations.ts';
import { createMemoryStore } from './memory-store.ts';

/** The clock's initial time. */
export const startTime = Date.UTC(2026, 0, 2, 3, 4, 5, 678);

/** Returns slices if it is too long for one transaction. */
export type Operation<I, O> = (ctx: Context, input: I) => O | Slices<O>;

export interface TestTenant {
  readonly store: Store;
  readonly world: World;
  /** Runs an operation in its own transaction, by default as the local administrator. */
  call<I, O>(operation: Operation<I, O>, input: I, caller?: Caller): Promise<O>;
  /** Reads a list, by default as the local administrator. */
  list<I, T>(
    read: (given: Reader & { readonly caller: Caller }, input: I) => Promise<WrittenPage<T> | Page<T>>,
    input: I,
    caller?: Caller,
  ): Promise<Page<T>>;
  /** Runs any function in a transaction, in the same way. */
  run<R>(fn: (ctx: Context) => R | Slices<R>, caller?: Caller): Promise<R>;
  /** Moves the clock on. */
  advance(milliseconds: number): void;
}

export interface TestTenantOptions {
  readonly limits?: Limits;
  /** Determines the random bytes. */
  readonly seed?: number;
  /** Epochs of the tenant keys. */
  readonly epochs?: readonly number[];
  /** An existing store; default: a new one. */
  readonly store?: Store;
  readonly defaultKem?: Kem;
}

export async function testTenant(options: TestTenantOptions = {}): Promise<TestTenant> {
  const { limits = {}, seed = 1, epochs = [1], defaultKem } = options;
  const store = options.store ?? (await createMemoryStore({ migrations: tenantMigrations, tables: tenantTables }));
  const clock = { now: startTime };
  const world = { ...testWorld(clock, seed), ...(defaultKem && { defaultKem }) };
  const keys = tenantKeys(new Map(epochs.map((epoch) => [epoch, new Uint8Array(32).fill(seed * 16 + epoch)])));
  const tenant = { id: world.newId('tenant'), name: 'default', limits, keys };
  const run: TestTenant['run'] = (fn, caller = localCaller) =>
    store.transactionInSlices((tx) =>
      tx.savepointInSlices(function* () {
        const result = fn({ tx, caller, tenant, world, note: () => {}, handsOut() {}, touches() {}, did() {} });
        return isInSlices(result) ? yield* result : result;
      }),
    );
  return {
    store,
    world,
    run,
    call: (operation, input, caller) => run((ctx) => operation(ctx, input), caller),
    list: async (read, input, caller = localCaller) => read({ store, world, caller }, input).then(readPage),
    advance(milliseconds) {
      clock.now += milliseconds;
    },
  };
}

function isInSlices<R>(result: R | Slices<R>): result is Slices<R> {
  return typeof result === 'object' && result !== null && Symbol.iterator in result && 'throw' in result;
}

/** The page with its items as objects, even if they are serialised already. */
export function readPage<T>({ items, ...rest }: WrittenPage<T> | Page<T>): Page<T> {
  if (!(items instanceof WrittenItems)) return { items, ...rest };
  const written = items.between('[', ']');
  const text = typeof written === 'string' ? written : Buffer.concat(written).toString();
  return { items: JSON.parse(text), ...rest };
}

/** Both clocks move together, unless `elapsed` is given. */
export function testWorld(clock: { now: number; elapsed?: number }, seed: number): World {
  const now = () => clock.now;
  const random = seededRandom(seed);
  const nextUlid = ulidGenerator({ now, random });
  return {
    now,
    elapsed: () => clock.elapsed ?? clock.now,
    random,
    newId: (prefix) => `${prefix}_${formatUlid(nextUlid())}`,
  };
}

/** A caller with these flags. */
export function callerWith(...flags: string[]): Caller {
  const raw = Object.fromEntries(flags.map((flag) => [flag, true]));
  return { kind: 'apikey', id: 'apik_00000000000000000000000000', flags: parseFlags(raw) };
}

/** Checks that the call fails with this code; returns the error. */
export async function refusal(code: ErrorCode, call: Promise<unknown>): Promise<KmsError> {
  try {
    await call;
  } catch (error) {
    if (!(error instanceof KmsError)) throw error;
    assert.equal(error.code, code, error.message);
    return error;
  }
  return assert.fail(`expected a refusal with ${code}`);
}

/** Bytes that look random and are the same for the same seed (mulberry32). */
export function seededRandom(seed: number): (length: number) => Uint8Array {
  let state = seed >>> 0;
  const byte = () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return (mixed ^ (mixed >>> 14)) & 0xff;
  };
  return (length) => Uint8Array.from({ length }, byte);
}
