// FlagEditor chooses permission flags: from the table, by resource, for one ring or all; and by name, for a program's
// own flags. Flags that the user may not grant are shown but cannot be chosen.
import { useId } from 'hono/jsx/dom';
import { type Flags, parseFlags } from '../../model/flags.ts';
import { Button } from '../parts/button.tsx';
import { Proposals } from '../parts/fields.tsx';
import { upperFirst } from '../text.ts';
import { abilitiesText } from './abilities.ts';
import {
  type FlagDraft,
  type FlagGroup,
  type FlagOperation,
  flagGroups,
  flagsOf,
  type NamesByResource,
  type OtherRow,
  otherProblem,
  otherWarning,
  type RingRow,
  ringNoun,
  ringProblem,
  unknownRing,
  wildcard,
  withOperation,
  withOther,
  withPlain,
  withRing,
} from './draft.ts';
import { presetDraft, presets } from './presets.ts';

interface FlagEditorProps {
  readonly draft: FlagDraft;
  readonly onChange: (draft: FlagDraft) => void;
  /** Flags of the user who chooses. */
  readonly mine: Readonly<Record<string, unknown>>;
  /** Names of rings to suggest, and to warn about others. */
  readonly names: NamesByResource;
}

export function FlagEditor({ draft, onChange, mine, names }: FlagEditorProps) {
  const coverage = parseFlags(mine);
  const hasAll = draft.plain.includes(wildcard);
  const isLimited = !coverage.covers(wildcard);
  return (
    <div data-flags>
      <Presets draft={draft} onChange={onChange} coverage={coverage} />
      {isLimited && <p>You can grant only flags that you have yourself; you cannot choose the others.</p>}
      <FlagChoice
        flag={wildcard}
        grants={everything}
        checked={hasAll}
        reason={lacking(coverage, wildcard)}
        onChange={(granted) => onChange(withPlain(draft, wildcard, granted))}
      />
      {hasAll && <p data-tone="warn">This one flag includes all others.</p>}
      {flagGroups.map((group) => (
        <FlagGroupChoice key={group.resource} {...{ group, draft, onChange, coverage, names }} verb="Grant" />
      ))}
      <OtherFlags {...{ draft, onChange, coverage, names }} />
    </div>
  );
}

type PresetsProps = Pick<FlagEditorProps, 'draft' | 'onChange'> & { readonly coverage: Flags };

/** The presets that fill the editor, and a summary of the current flags. */
function Presets({ draft, onChange, coverage }: PresetsProps) {
  const unnamed = draft.rings.filter((row) => row.operations.length > 0 && ringProblem(row) !== undefined);
  const chosen = flagsOf({ ...draft, rings: draft.rings.filter((row) => !unnamed.includes(row)) });
  const isNothing = !Object.values(chosen).includes(true);
  return (
    <>
      <fieldset data-presets>
        <legend>Start from</legend>
        {presets.map((preset) => (
          <Button
            key={preset.name}
            kind="quiet"
            needs={preset.flags?.find((flag) => !coverage.covers(flag))}
            onClick={() => onChange(presetDraft(preset, draft))}
          >
            {preset.name}
          </Button>
        ))}
      </fieldset>
      <p role="status" data-note data-abilities>
        {isNothing ? 'No permissions chosen yet.' : abilitiesText(chosen)}
        {unnamed[0] && ` You still have to name a ${ringNoun(unnamed[0].resource)} below.`}
      </p>
    </>
  );
}

/** The text beside the box for `*`. */
const everything = [
  'everything that exists and can be done here, including what is created later or comes with a newer version.',
  'Its holder can grant it to others too',
].join(' ');

interface GroupProps {
  readonly group: FlagGroup;
  readonly draft: FlagDraft;
  readonly onChange: (draft: FlagDraft) => void;
  readonly coverage: Flags;
  readonly names: NamesByResource;
  /** Done with operations by choosing them: `Grant`. */
  readonly verb: string;
}

/** The flags of one resource. */
export function FlagGroupChoice({ group, draft, onChange, coverage, names, verb }: GroupProps) {
  const { resource, title, plain, ofRing } = group;
  const all = `${resource}.${wildcard}`;
  const choices = [
    ...plain,
    {
      name: wildcard,
      grants: `everything about ${title}, including what is created later or comes with a newer version`,
    },
  ];
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
      {ofRing.length > 0 && <RingFlags {...{ resource, operations: ofRing, draft, onChange, coverage, names, verb }} />}
    </details>
  );
}

interface RingFlagsProps extends Omit<GroupProps, 'group'> {
  readonly resource: string;
  readonly operations: readonly FlagOperation[];
}

/** Rows of operations granted on one ring or on all: the ring is typed, the operations are ticked. */
function RingFlags({ resource, operations, draft, onChange, coverage, names, verb }: RingFlagsProps) {
  const noun = ringNoun(resource);
  const rows = draft.rings.map((row, index) => ({ row, index })).filter(({ row }) => row.resource === resource);
  return (
    <>
      {rows.map(({ row, index }, position) => (
        <RingFields
          key={index}
          row={row}
          title={`${upperFirst(noun)} ${position + 1}`}
          operations={operations}
          coverage={coverage}
          names={names}
          onChange={(changed) => onChange(withRing(draft, index, changed))}
        />
      ))}
      <button
        type="button"
        data-kind="quiet"
        onClick={() => onChange(withRing(draft, draft.rings.length, { resource, ring: '', operations: [] }))}
      >
        {rows.length === 0 ? `${verb} operations on a ${noun}` : `Add another ${noun}`}
      </button>
    </>
  );
}

interface RingFieldsProps extends Pick<RingFlagsProps, 'operations' | 'coverage' | 'names'> {
  readonly row: RingRow;
  readonly title: string;
  readonly onChange: (row: RingRow | undefined) => void;
}

function RingFields({ row, title, operations, coverage, names, onChange }: RingFieldsProps) {
  const id = useId();
  const noun = ringNoun(row.resource);
  const isEvery = row.ring === wildcard;
  const problem = row.operations.length > 0 ? ringProblem(row) : undefined;
  const ring = row.ring.trim().toLowerCase();
  const doubt = unknownRing(row, names);
  const choices = [...operations, { name: wildcard, grants: 'every operation on it, now and later' }];
  return (
    <fieldset data-row>
      <legend>{title}</legend>
      <div data-choice>
        <input
          id={`${id}-every`}
          type="checkbox"
          checked={isEvery}
          onChange={(event: Event) =>
            onChange({ ...row, ring: (event.target as HTMLInputElement).checked ? wildcard : '' })
          }
        />
        <label for={`${id}-every`}>All {noun}s, including those created later</label>
      </div>
      {!isEvery && (
        <>
          <label for={id}>Name of the {noun}</label>
          <input
            id={id}
            list={`${id}-names`}
            value={row.ring}
            autocomplete="off"
            autocapitalize="none"
            spellcheck={false}
            aria-invalid={problem === undefined ? undefined : 'true'}
            aria-describedby={problem === undefined ? undefined : `${id}-problem`}
            onInput={(event: Event) => onChange({ ...row, ring: (event.target as HTMLInputElement).value })}
          />
          <Proposals id={`${id}-names`} texts={names.get(row.resource) ?? []} />
          {problem !== undefined && (
            <p id={`${id}-problem`} data-tone="bad">
              {problem}
            </p>
          )}
          <p role="status" data-tone="warn">
            {doubt}
          </p>
        </>
      )}
      {choices.map(({ name, grants }) => {
        const flag = `${row.resource}.${ring || '<ringname>'}.${name}`;
        return (
          <FlagChoice
            key={name}
            flag={flag}
            grants={grants}
            checked={row.operations.includes(name)}
            reason={ring === '' ? undefined : lacking(coverage, flag)}
            onChange={(granted) => onChange(withOperation(row, name, granted))}
          />
        );
      })}
      <button type="button" data-kind="quiet" onClick={() => onChange(undefined)}>
        Remove this {noun}
      </button>
    </fieldset>
  );
}

interface OtherFlagsProps {
  readonly draft: FlagDraft;
  readonly onChange: (draft: FlagDraft) => void;
  readonly coverage: Flags;
  readonly names: NamesByResource;
}

/**
 * Flags by name: those that programs define for themselves, and those of the table that are set to false. Both are
 * kept, and grant nothing here.
 */
function OtherFlags({ draft, onChange, coverage, names }: OtherFlagsProps) {
  return (
    <details open={draft.others.length > 0 || undefined}>
      <summary>
        <strong>Other flags, by name</strong>: {draft.others.length === 0 ? 'none' : draft.others.length}
      </summary>
      <p>Your own programs can keep permissions here. This service stores them and ignores them.</p>
      {draft.others.map((row, index) => (
        <OtherFields
          key={index}
          row={row}
          position={index + 1}
          coverage={coverage}
          names={names}
          onChange={(changed) => onChange(withOther(draft, index, changed))}
        />
      ))}
      <button
        type="button"
        data-kind="quiet"
        onClick={() => onChange(withOther(draft, draft.others.length, { name: '', granted: true }))}
      >
        Add a flag by name
      </button>
    </details>
  );
}

interface OtherFieldsProps {
  readonly row: OtherRow;
  readonly position: number;
  readonly coverage: Flags;
  readonly names: NamesByResource;
  readonly onChange: (row: OtherRow | undefined) => void;
}

function OtherFields({ row, position, coverage, names, onChange }: OtherFieldsProps) {
  const id = useId();
  const problem = otherProblem(row);
  const warning = otherWarning(row, names);
  const isLacking = row.granted && row.name !== '' && !coverage.covers(row.name);
  return (
    <fieldset data-row>
      <legend>Flag by name, {position}</legend>
      <label for={id}>Name</label>
      <input
        id={id}
        value={row.name}
        autocomplete="off"
        autocapitalize="none"
        spellcheck={false}
        aria-describedby={`${id}-notes`}
        onInput={(event: Event) => onChange({ ...row, name: (event.target as HTMLInputElement).value })}
      />
      <div data-choice>
        <input
          id={`${id}-granted`}
          type="checkbox"
          checked={row.granted}
          onChange={(event: Event) => onChange({ ...row, granted: (event.target as HTMLInputElement).checked })}
        />
        <label for={`${id}-granted`}>Granted</label>
      </div>
      <div id={`${id}-notes`}>
        {problem !== undefined && <p data-tone="bad">{problem}</p>}
        {warning !== undefined && <p data-tone="warn">{warning}</p>}
        {isLacking && <p data-tone="bad">You do not have this flag yourself, so the service will refuse it.</p>}
      </div>
      <button type="button" data-kind="quiet" onClick={() => onChange(undefined)}>
        Remove flag {position}
      </button>
    </fieldset>
  );
}

interface FlagChoiceProps {
  readonly flag: string;
  readonly grants: string;
  readonly checked: boolean;
  /** Why it cannot be chosen; undefined if it can. */
  readonly reason: string | undefined;
  readonly onChange: (granted: boolean) => void;
}

/** A checkbox for a flag of the table, with what it grants and, if it cannot be granted, why. */
function FlagChoice({ flag, grants, checked, reason, onChange }: FlagChoiceProps) {
  const id = useId();
  const isLocked = reason !== undefined;
  return (
    <div data-choice>
      <input
        id={id}
        type="checkbox"
        checked={checked}
        disabled={isLocked}
        aria-describedby={isLocked ? `${id}-why` : undefined}
        onChange={(event: Event) => onChange((event.target as HTMLInputElement).checked)}
      />
      <label for={id}>
        <code>{flag}</code> <span>{grants}</span>
      </label>
      {isLocked && <small id={`${id}-why`}>{reason}</small>}
    </div>
  );
}

/** Why a user with these flags cannot grant the flag. */
function lacking(coverage: Flags, flag: string): string | undefined {
  return coverage.covers(flag) ? undefined : 'You do not have this flag yourself.';
}
