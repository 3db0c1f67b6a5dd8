// Certificates among the proofs of all API keys: a pinned key, or a name by an authority, is the proof of one of them.
import type { Around, Problem, Wanted } from './kind.ts';
import { certificateIdentity, proofsIn } from './proof-matching.ts';

const known = new WeakMap<Around, ReadonlyMap<string, readonly Wanted[]>>();

/** The API keys of the files, by the identities of their certificates. */
function holdersIn(around: Around): ReadonlyMap<string, readonly Wanted[]> {
  let holders = known.get(around);
  if (!holders) {
    const pairs = around.wanted('apikey').flatMap((key) =>
      proofsIn(key.fields).flatMap((proof) => {
        const identity = certificateIdentity(proof);
        return identity === undefined ? [] : [{ identity, key }];
      }),
    );
    const groups = Map.groupBy(pairs, ({ identity }) => identity);
    holders = new Map([...groups].map(([identity, group]) => [identity, group.map(({ key }) => key)]));
    known.set(around, holders);
  }
  return holders;
}

/** Problems of proofs that another API key of the files has, too. */
export function sharedProofProblems({ name, fields }: Wanted, around: Around): Problem[] {
  return proofsIn(fields).flatMap((proof, at): Problem[] => {
    const identity = certificateIdentity(proof);
    const holders = identity === undefined ? [] : (holdersIn(around).get(identity) ?? []);
    const other = holders.find((key) => key.name !== name);
    const message = `the API key ${other?.name} of the files has it, too: a program is one API key`;
    return other ? [{ path: ['proofs', at], message }] : [];
  });
}
