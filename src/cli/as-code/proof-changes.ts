// The order in which the proofs of an API key are changed: the new comes before the old goes, so that a program can log
// in all the time. Where a limit leaves no room for both, one goes before one comes, so that the others stay live.
import type { Proof } from '../../api/proofs.ts';
import type { JsonObject } from '../../model/json.ts';
import type { ProofChanges } from './proof-matching.ts';
import { eachOrWaiting } from './waiting.ts';

interface ProofActs {
  /** Resolves once the new proof is live, if it is to be. */
  add(proof: JsonObject): Promise<unknown>;
  turn(proof: Proof, active: boolean): Promise<unknown>;
  remove(proof: Proof): Promise<unknown>;
  addSecret?(): Promise<unknown>;
  removeSecret?(): Promise<void>;
}

export async function changeProofs(acts: ProofActs, changes: ProofChanges): Promise<void> {
  const { added, renewed, switched, removed, first, room } = changes;
  await eachOrWaiting(first, acts.remove);
  await acts.addSecret?.();
  const rest = new Set(removed.filter((proof) => !first.includes(proof)));
  let { removeSecret } = acts;
  const remove = async (proof: Proof): Promise<void> => {
    if (proof.kind !== 'secret') await acts.remove(proof);
    else {
      await removeSecret?.();
      removeSecret = undefined;
    }
  };
  let isHeldUp = false;
  const add = async (proof: JsonObject): Promise<void> => {
    const leaving = room.get(proof) ?? [];
    // The new one that would stand in for the last of a kind waits for approval: the next run goes on.
    if (isHeldUp && leaving.some(({ kind }) => [...rest].filter((each) => each.kind === kind).length <= 1)) return;
    for (const each of leaving) rest.delete(each);
    try {
      await eachOrWaiting(leaving, remove);
      await acts.add(proof);
    } catch (error) {
      isHeldUp = true;
      throw error;
    }
  };
  const turns = (isOn: boolean) =>
    switched
      .filter(({ active }) => active === isOn)
      .map(
        ({ proof, active }) =>
          () =>
            acts.turn(proof, active),
      );
  await doAll([
    ...added.map((proof) => () => add(proof)),
    ...renewed.map(
      ({ by }) =>
        () =>
          acts.add(by),
    ),
    ...turns(true),
  ]);
  await doAll([
    ...turns(false),
    ...[...rest].map((proof) => () => remove(proof)),
    ...(removeSecret ? [removeSecret] : []),
  ]);
}

function doAll(acts: readonly (() => Promise<unknown>)[]): Promise<void> {
  return eachOrWaiting(acts, (act) => act());
}
