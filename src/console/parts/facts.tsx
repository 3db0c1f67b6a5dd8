// What is known of one thing, as pairs of a name and a value; pairs without a value are left out.
import type { Child } from 'hono/jsx/dom';

export type Fact = readonly [name: string, value: Child] | false | undefined;

export function Facts({ facts }: { readonly facts: readonly Fact[] }) {
  return (
    <dl>
      {facts.map(
        (fact) =>
          fact && (
            <div key={fact[0]}>
              <dt>{fact[0]}</dt>
              <dd>{fact[1]}</dd>
            </div>
          ),
      )}
    </dl>
  );
}
