// Breaks a piece of work at each of its steps on the simulated disk, one after the other, in each of several ways, and
// counts the crash points: each is one power failure after which the recovery was checked. The gate tries every
// sixth step. KMS_WHOLE=1 tries all, KMS_SWEEP_SEEDS sets the number of seeds, KMS_CRASH_POINT (seed/kind/step) runs one point alone.
import { AssertionError } from 'node:assert';
import { relative } from 'node:path';
import { KmsError } from '../../src/errors.ts';
import { effort } from './effort.ts';
import { type Prng, prng } from './prng.ts';
import { SimFiles, type Step } from './sim-files.ts';

export const faultKinds = ['crash', 'error', 'full'] as const;

export interface Fault {
  /** The machine crashes, the step fails once, or the disk is full from that step on. Power always fails at the end. */
  readonly kind: (typeof faultKinds)[number];
  /** From 1. */
  readonly at: number;
}

export interface Sweep<B> {
  /** The test file. */
  readonly file: string;
  readonly seeds: number;
  /** Tests only every n-th step, starting at another one for each seed. Default: every step. */
  readonly every?: number;
  /** Kinds of faults. Default: all. */
  readonly kinds?: readonly Fault['kind'][];
  /** Runs once for each seed; every point starts from its result. */
  prepare(generator: Prng): Promise<B>;
  /** Throws if a check fails. Returns whether the work reached the fault. */
  attempt(base: B, fault: Fault, generator: Prng): Promise<boolean>;
}

/** Returns the number of crash points. */
export async function crashSweep<B>(sweep: Sweep<B>): Promise<number> {
  const [seed, kind, at] = process.env.KMS_CRASH_POINT?.split('/') ?? [];
  if (seed !== undefined) {
    const chosen = faultKinds.find((each) => each === kind);
    if (!chosen) throw new Error('KMS_CRASH_POINT is seed/kind/step, such as 1/crash/17');
    await point(sweep, await sweep.prepare(prng(Number(seed))), Number(seed), { kind: chosen, at: Number(at) });
    return 1;
  }
  const every = Math.max(sweep.every ?? 1, effort(6, 1));
  const seeds = Number(process.env.KMS_SWEEP_SEEDS ?? sweep.seeds);
  let points = 0;
  for (let each = 1; each <= seeds; each++) {
    const base = await sweep.prepare(prng(each));
    for (const way of sweep.kinds ?? faultKinds) {
      // Kinds begin at different steps, so that together they try more of them.
      let step = 1 + ((each - 1 + 2 * faultKinds.indexOf(way)) % every);
      for (; await point(sweep, base, each, { kind: way, at: step }); step += every) points++;
    }
  }
  return points;
}

async function point<B>(sweep: Sweep<B>, base: B, seed: number, fault: Fault): Promise<boolean> {
  try {
    return await sweep.attempt(base, fault, prng(seed * 1_000_003 + fault.at));
  } catch (error) {
    const file = relative(process.cwd(), sweep.file);
    const again = `KMS_CRASH_POINT=${seed}/${fault.kind}/${fault.at} node --test ${file}`;
    throw new Error(`${again}: ${error instanceof Error ? error.message : error}`, { cause: error });
  }
}

/** A copy of `files`, on a disk without faults. */
export function copyOf(files: SimFiles, generator: Prng): SimFiles {
  // Not `restart`, which would draw from the generator of `files`: then no point could run alone.
  return new SimFiles({ disk: files.disk.afterCrash(generator), prng: generator });
}

/** A copy of `files`, on a disk with this fault. */
export function breaking(files: SimFiles, { kind, at }: Fault, generator: Prng): SimFiles {
  const broken = copyOf(files, generator);
  if (kind === 'crash') return new SimFiles({ disk: broken.disk, prng: generator, crashAt: at });
  const spare = generator.int(600);
  const noNames = generator.chance(0.3);
  broken.failure = (step: Step, number: number) => {
    if (number < at) return undefined;
    if (kind === 'error') return number === at ? 'EIO' : undefined;
    broken.capacity = Math.min(broken.capacity, broken.disk.used + spare);
    return noNames && step === 'create' ? 'ENOSPC' : undefined;
  };
  return broken;
}

/** Ends the fault. Returns whether the work reached it. */
export function mend(files: SimFiles, { at }: Fault): boolean {
  files.failure = undefined;
  files.capacity = Number.POSITIVE_INFINITY;
  return files.steps >= at;
}

/**
 * Whether the work succeeded. Rethrows failures that the fault does not explain, and any damage, which no fault
 * excuses.
 */
export async function done(files: SimFiles, { at }: Fault, work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return !files.crashed;
  } catch (error) {
    const isFinding = error instanceof AssertionError || (error instanceof KmsError && error.code === 'corrupt');
    if (isFinding || files.steps < at) throw error;
    return false;
  }
}
