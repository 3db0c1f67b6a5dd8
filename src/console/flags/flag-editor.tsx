// Chooses permission flags from the table of them: by resource, for one ring or all, and by name where a program has flags of its own.
// What the person at the screen may not grant is shown and cannot be chosen.
import { useId } from 'hono/jsx/dom';
import { type Coverage, coverageOf } from './coverage.ts';
import { type FlagDraft, withPlain } from './draft.ts';
import { FlagChoice, lacking } from './flag-choice.tsx';
import { type FlagGroup, flagGroups, wildcard } from './groups.ts';
import { OtherFlags } from './other-flags.tsx';
import { RingFlags } from './ring-flags.tsx';

export interface FlagEditorProps {
  readonly draft: FlagDraft;
  readonly onChange: (draft: FlagDraft) => void;
  /** The flags of whoever is choosing. */
  readonly mine: Readonly<Record<string, unknown>>;
  /** Names of rings to propose, where they are known. */
  readonly rings?: readonly string[];
}

export function FlagEditor({ draft, onChange, mine, rings = [] }: FlagEditorProps) {
  const coverage = coverageOf(mine);
  const names = useId();
  const hasAll = draft.plain.includes(wildcard);
  const isLimited = !coverage.covers(wildcard);
  return (
    <div data-flags>
      {isLimited && <p>You can grant what you have been granted yourself; the rest cannot be chosen.</p>}
      <datalist id={names}>
        {rings.map((ring) => (
          <option key={ring} value={ring} />
        ))}
      </datalist>
      <FlagChoice
        flag={wildcard}
        grants="everything, now and later"
        checked={hasAll}
        reason={lacking(coverage, wildcard)}
        onChange={(granted) => onChange(withPlain(draft, wildcard, granted))}
      />
      {hasAll && <p data-tone="warn">This one flag includes all others.</p>}
      {flagGroups.map((group) => (
        <Group key={group.resource} {...{ group, draft, onChange, coverage, names }} />
      ))}
      <OtherFlags draft={draft} onChange={onChange} coverage={coverage} />
    </div>
  );
}

interface GroupProps {
  readonly group: FlagGroup;
  readonly draft: FlagDraft;
  readonly onChange: (draft: FlagDraft) => void;
  readonly coverage: Coverage;
  /** The id of the list of rings' names. */
  readonly names: string;
}

function Group({ group, draft, onChange, coverage, names }: GroupProps) {
  const { resource, title, plain, ofRing } = group;
  const all = `${resource}.${wildcard}`;
  const choices = [...plain, { name: wildcard, grants: `everything about ${title}, now and later` }];
  const chosen = draft.plain.filter((flag) => flag.startsWith(`${resource}.`)).length;
  const rows = draft.rings.filter((row) => row.resource === resource);
  const granted = rows.reduce((sum, { operations }) => sum + operations.length, chosen);
  return (
    <details open={granted + rows.length > 0 || undefined}>
      <summary>
        <strong>{title}</strong>: {granted === 0 ? 'none' : `${granted} chosen`}
      </summary>
      {choices.map(({ name, grants }) => {
        const flag = `${resource}.${name}`;
        return (
          <FlagChoice
            key={flag}
            flag={flag}
            grants={grants}
            checked={draft.plain.includes(flag)}
            reason={lacking(coverage, flag)}
            onChange={(granted) => onChange(withPlain(draft, flag, granted))}
          />
        );
      })}
      {draft.plain.includes(all) && <p data-tone="warn">{all} includes all the others here.</p>}
      {ofRing.length > 0 && <RingFlags {...{ resource, operations: ofRing, draft, onChange, coverage, names }} />}
    </details>
  );
}
