// RingPage is the common frame of pages about a single ring, in client or server custody: actions on the ring as a
// whole, its deletion, and how its settings are edited.
import type { Child } from 'hono/jsx/dom';
import { consolePages } from '../../api/console-pages.ts';
import { ageText, parseAge } from '../../model/ages.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { Confirm, ConfirmByName, Dialog } from '../parts/dialog.tsx';
import { Field } from '../parts/fields.tsx';
import { EditPanel, type FormValues } from '../parts/form.tsx';
import { Failed, Loading, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { type Shown, useAnswer, useState } from '../parts/state.ts';
import { Copyable, type Fact, Facts, Time } from '../parts/values.tsx';

/** Kinds of rings: the prefix of their flags, and their pages. */
export const ringKinds = {
  keyring: { flags: 'keyring', page: 'keyring', list: 'keyrings' },
  managedKey: { flags: 'key', page: 'managedKey', list: 'managedKeys' },
} as const;
export type RingKind = (typeof ringKinds)[keyof typeof ringKinds];

export function nounOf({ page }: RingKind): string {
  return consolePages[page].title.toLowerCase();
}

interface ShownRing {
  readonly id: string;
  readonly name: string;
  readonly displayName: string;
  readonly custody: keyof typeof custodies;
  readonly createdAt: string;
  readonly updatedAt: string;
}

const custodies = {
  client: 'the holder of its private key can use its keys; the service cannot',
  server: 'the service holds its keys and can use them',
};

interface UsualDeletion<Ring> {
  /** Why it cannot be deleted now; undefined if it can, or if that is not known. */
  readonly hindrance?: (ring: Ring, signal: AbortSignal) => Promise<string | undefined>;
  readonly remove: (ring: Ring) => Promise<{ readonly id: string }>;
  readonly restore: (id: string) => Promise<unknown>;
  /** The effect of its deletion. */
  readonly loss: string;
}

interface RingPageProps<Ring> extends Pick<PageProps, 'navigate'> {
  readonly kind: RingKind;
  /** Name as in the address. */
  readonly name: string;
  readonly answer: Shown<{ readonly ring: Ring }>;
  /** Further actions. */
  readonly actions?: (ring: Ring) => Child;
  /** Resolves with a text for the user. */
  readonly rotate: () => Promise<string>;
  /** The effect of its rotation. */
  readonly rotation: (ring: Ring) => string;
  readonly mayBeRotated?: (ring: Ring) => boolean;
  readonly mayBeDeleted?: (ring: Ring) => boolean;
  /** Its deletion: the dialog for it, or how the usual one does it. */
  readonly deletion: ((ring: Ring, onClose: () => void) => Child) | UsualDeletion<Ring>;
  /** Says whom a rotation or deletion concerns. */
  readonly use?: (ring: Ring) => Child;
  readonly facts: (ring: Ring) => readonly Fact[];
  readonly show: (ring: Ring) => Child;
}

export function RingPage<Ring extends ShownRing>(props: RingPageProps<Ring>) {
  const { kind, name, answer, actions, deletion, mayBeRotated = () => true, mayBeDeleted = () => true } = props;
  const [isDeleting, setDeleting] = useState(false);
  const [isRotating, setRotating] = useState(false);
  const ring = answer.is === 'ready' ? answer.value.ring : undefined;
  const title = ring?.displayName ?? name;
  const { title: listTitle } = consolePages[kind.list];
  return (
    <>
      <PageHeader
        title={title}
        windowTitle={`${consolePages[kind.page].title} ${title}`}
        back={{ href: hrefTo(kind.list), title: listTitle }}
        actions={
          ring && (
            <>
              {actions?.(ring)}
              {mayBeRotated(ring) && (
                <Button kind="quiet" needs={`${kind.flags}.${ring.name}.rotate`} onClick={() => setRotating(true)}>
                  Rotate…
                </Button>
              )}
              {mayBeDeleted(ring) && (
                <Button kind="danger" needs={`${kind.flags}.${ring.name}.delete`} onClick={() => setDeleting(true)}>
                  Delete…
                </Button>
              )}
            </>
          )
        }
      />
      {answer.is === 'loading' && <Loading key="loading" />}
      {answer.is === 'failed' && <Failed key="failed" error={answer.error} onRetry={answer.reload} />}
      {ring && (
        <div key="ring">
          <section data-panel>
            <Facts
              facts={[
                ['Name', ring.name],
                ['Id', <Copyable text={ring.id} what={`the id of the ${nounOf(kind)}`} />],
                ['Custody', `${ring.custody}: ${custodies[ring.custody]}`],
                ...props.facts(ring),
                ['Created', <Time at={ring.createdAt} />],
                ['Changed', <Time at={ring.updatedAt} />],
              ]}
            />
          </section>
          {props.show(ring)}
        </div>
      )}
      {isRotating && ring && (
        <Confirm
          key="rotate"
          title={`Rotate ${ring.displayName}?`}
          action={`Rotate the ${nounOf(kind)}`}
          busy="Rotating…"
          onClose={() => setRotating(false)}
          onConfirm={async () => {
            const text = await props.rotate();
            setRotating(false);
            toast(text);
          }}
        >
          <p>{props.rotation(ring)}</p>
          {props.use?.(ring)}
        </Confirm>
      )}
      {isDeleting &&
        ring &&
        (typeof deletion === 'function' ? (
          <div key="delete">{deletion(ring, () => setDeleting(false))}</div>
        ) : (
          <DeleteRing key="delete" {...props} {...deletion} ring={ring} onClose={() => setDeleting(false)} />
        ))}
    </>
  );
}

interface DeleteRingProps<Ring> extends Pick<RingPageProps<Ring>, 'kind' | 'navigate' | 'use'>, UsualDeletion<Ring> {
  readonly ring: Ring;
  readonly onClose: () => void;
}

/** Asks for the name only if the ring can be deleted. */
function DeleteRing<Ring extends ShownRing>(props: DeleteRingProps<Ring>) {
  const { kind, ring, navigate, onClose, hindrance } = props;
  const found = useAnswer(async (signal) => hindrance?.(ring, signal));
  const { title: listTitle } = consolePages[kind.list];
  const title = `Delete ${ring.displayName}?`;
  if (hindrance && found.is === 'loading') {
    return (
      <Dialog key="loading" title={title} onClose={onClose}>
        <Loading />
      </Dialog>
    );
  }
  if (found.is === 'ready' && found.value !== undefined) {
    return (
      <Dialog key="hindered" title={title} onClose={onClose}>
        <p>{found.value}</p>
        <button type="button" data-kind="quiet" onClick={onClose}>
          Close
        </button>
      </Dialog>
    );
  }
  return (
    <ConfirmByName
      key="ask"
      title={title}
      name={ring.name}
      action={`Delete the ${nounOf(kind)}`}
      busy="Deleting it…"
      onClose={onClose}
      onConfirm={async () => {
        const { id } = await props.remove(ring);
        navigate(hrefTo(kind.list, {}, { deleted: id, name: ring.name }));
        toast(`Deleted ${ring.displayName}.`, async () => {
          await props.restore(id);
          navigate(hrefTo(kind.page, { name: ring.name }));
          toast(`${ring.displayName} is back.`);
        });
      }}
    >
      <p>
        {props.loss} For 30 days you can restore it on the page {listTitle}; then its keys are gone for ever.
      </p>
      {props.use?.(ring)}
    </ConfirmByName>
  );
}

interface RingSettingsProps {
  readonly kind: RingKind;
  readonly name: string;
  readonly onSave: (read: FieldReader) => Promise<void>;
  readonly fields: Child;
  readonly shown: Child;
}

export function RingSettings({ kind, name, onSave, fields, shown }: RingSettingsProps) {
  return (
    <EditPanel
      title="Settings"
      change="Change settings"
      action="Save settings"
      needs={`${kind.flags}.${name}.config`}
      onSave={(values) => onSave(fieldReader(values))}
      saved="The settings are saved."
      {...{ fields, shown }}
    />
  );
}

export type FieldReader = ReturnType<typeof fieldReader>;

/** Minimum rotation age in milliseconds. */
const leastAge = 3_600_000;

/** Reads fields and collects problems, which `check` throws. */
function fieldReader(values: FormValues) {
  const problems: Record<string, string> = {};
  const note = (name: string, problem: string): void => {
    problems[name] ??= problem;
  };
  return {
    values,
    note,
    wholeNumber(name: string, least: number, most?: number): number {
      const text = values.text(name);
      const number = /^[0-9]{1,16}$/.test(text) ? Number(text) : Number.NaN;
      if (number >= least && number <= (most ?? Number.MAX_SAFE_INTEGER)) return number;
      const range = most === undefined ? `of at least ${least}` : `from ${least} to ${most}`;
      note(name, `Enter a whole number ${range}.`);
      return least;
    },
    /** Seconds; null if the field is empty. */
    rotateAfter(): number | null {
      const text = values.text('rotateAfter');
      if (text === '') return null;
      const milliseconds = parseAge(text) ?? 0;
      if (milliseconds < leastAge) note('rotateAfter', 'Enter an age of at least 1h, such as 12h or 90d.');
      return milliseconds / 1000;
    },
    check(): void {
      if (Object.keys(problems).length > 0) throw new FieldProblems(problems);
    },
  };
}

interface AgeFieldProps {
  readonly label: string;
  /** The effect of reaching that age. */
  readonly hint: string;
  /** Seconds. */
  readonly value: number | null;
}

/** Input for the age at which a ring rotates automatically. */
export function AgeField({ label, hint, value }: AgeFieldProps) {
  return (
    <Field
      name="rotateAfter"
      label={label}
      hint={`Such as 12h or 90d; leave it empty for no limit. ${hint}`}
      value={value === null ? '' : servesFor(value)}
    />
  );
}

/** Text for an age in seconds. */
export function servesFor(age: number | null): string {
  return age === null ? 'no limit' : ageText(age * 1000);
}
