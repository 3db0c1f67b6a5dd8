// How much the long sweeps do. The gate runs a part of each, so that every class is tried in every run; all of it runs
// with KMS_WHOLE=1, as scripts/sweeps does.

/** Whether everything is to run. */
export const isWhole = process.env.KMS_WHOLE === '1';

/** `whole`, or `part` in the gate. */
export function effort(part: number, whole: number): number {
  return isWhole ? whole : part;
}

/** Every `nth` of a list in the gate, the first and the last among them. */
export function partOf<T>(all: readonly T[], nth: number): readonly T[] {
  return isWhole ? all : all.filter((_, at) => at % nth === 0 || at === all.length - 1);
}
