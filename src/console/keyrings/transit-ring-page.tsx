// TransitRingPage is one ring whose keys the service holds: what is known of it, its settings and its versions; it rotates
// and deletes it.
import type { TransitRing } from '../../api/transit.ts';
import { ageText, parseAge } from '../../model/ages.ts';
import { isCipher } from '../../model/transit.ts';
import { FieldProblems } from '../error-text.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button, CancelButton } from '../parts/button.tsx';
import { ConfirmByName } from '../parts/dialog.tsx';
import { Check, Field } from '../parts/fields.tsx';
import { Form, type FormValues } from '../parts/form.tsx';
import { ActionError, Failed, Loading, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAction, useAnswer, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Copyable, Facts, Time } from '../parts/values.tsx';

type Version = NonNullable<TransitRing['versions']>[number];

export function TransitRingPage({ api, navigate, params }: PageProps) {
  const ringname = params.name ?? '';
  const answer = useAnswer((signal) => api.getTransitRing({ ringname }, { signal }));
  const [isDeleting, setDeleting] = useState(false);
  const ring = answer.is === 'ready' ? answer.value.ring : undefined;

  const rotate = useAction(async () => {
    const changed = await api.rotateTransitRing({ ringname });
    answer.set(changed);
    toast(`It has the new version ${changed.ring.latestVersion}.`);
  });

  return (
    <>
      <PageHeader
        title={ring?.displayName ?? ringname}
        windowTitle={`Transit ring ${ring?.displayName ?? ringname}`}
        back={{ href: hrefTo('transit'), title: 'Transit rings' }}
        actions={
          ring && (
            <>
              <Button kind="quiet" needs={`transit.${ring.name}.rotate`} isBusy={rotate.isBusy} onClick={rotate.start}>
                Rotate
              </Button>
              {ring.deletionAllowed && (
                <Button kind="danger" needs={`transit.${ring.name}.delete`} onClick={() => setDeleting(true)}>
                  Delete…
                </Button>
              )}
            </>
          )
        }
      />
      <ActionError error={rotate.error} />
      {answer.is === 'loading' && <Loading key="loading" />}
      {answer.is === 'failed' && <Failed key="failed" error={answer.error} onRetry={answer.reload} />}
      {ring && <About key="about" ring={ring} />}
      {ring && (
        <Settings
          key="settings"
          ring={ring}
          onSave={async (config) => {
            answer.set(await api.configureTransitRing({ ringname, ...config }));
            toast('The settings are saved.');
          }}
        />
      )}
      {ring && <Versions key="versions" ring={ring} onRefresh={answer.reload} />}
      {isDeleting && ring && (
        <ConfirmByName
          title={`Delete ${ring.displayName}?`}
          name={ring.name}
          action="Delete the transit ring"
          busy="Deleting it…"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            const { id } = await api.deleteTransitRing({ ringname });
            navigate(hrefTo('transit', {}, { deleted: id, name: ring.name }));
          }}
        >
          <p>
            From then on nothing can be encrypted, decrypted, signed or verified with it. For 30 days it can be brought
            back, from the page of transit rings; after that its keys are gone for ever.
          </p>
        </ConfirmByName>
      )}
    </>
  );
}

function About({ ring }: { readonly ring: TransitRing }) {
  return (
    <section data-panel>
      <Facts
        facts={[
          ['Name', ring.name],
          ['Id', <Copyable text={ring.id} what="the id of the transit ring" />],
          ['Custody', `${ring.custody}: the service holds its keys, and can use them`],
          ['Type', <code>{ring.type}</code>],
          ['Keys are derived', ring.derived ? 'yes, by the context of each message' : 'no'],
          ['Latest version', ring.latestVersion],
          ['Created', <Time at={ring.createdAt} />],
          ['Changed', <Time at={ring.updatedAt} />],
        ]}
      />
    </section>
  );
}

interface Config {
  readonly minDecryptionVersion: number;
  readonly minEncryptionVersion: number;
  readonly deletionAllowed: boolean;
  readonly rotateAfter: number | null;
}

interface SettingsProps {
  readonly ring: TransitRing;
  readonly onSave: (config: Config) => Promise<void>;
}

/** What the two least versions are of. */
function wordsOf({ type }: TransitRing): { readonly reads: string; readonly makes: string } {
  return isCipher(type) ? { reads: 'Decrypts', makes: 'Encrypts' } : { reads: 'Verifies', makes: 'Signs' };
}

function Settings({ ring, onSave }: SettingsProps) {
  const [isEditing, setEditing] = useState(false);
  const { reads, makes } = wordsOf(ring);
  return (
    <section data-panel>
      <div data-bar>
        <h2>Settings</h2>
        {!isEditing && (
          <Button kind="quiet" needs={`transit.${ring.name}.config`} onClick={() => setEditing(true)}>
            Change settings
          </Button>
        )}
      </div>
      {isEditing ? (
        <Form
          key="edit"
          action="Save settings"
          busy="Saving…"
          onSubmit={async (values) => {
            await onSave(configOf(values, ring));
            setEditing(false);
          }}
          beside={<CancelButton onClick={() => setEditing(false)} />}
        >
          <Field
            name="minDecryptionVersion"
            label={`${reads} from version`}
            hint={`Messages of older versions are refused until this is lower again; at most ${ring.latestVersion}.`}
            value={String(ring.minDecryptionVersion)}
            isRequired
          />
          <Field
            name="minEncryptionVersion"
            label={`${makes} from version`}
            hint="0: with any that is read."
            value={String(ring.minEncryptionVersion)}
            isRequired
          />
          <Field
            name="rotateAfter"
            label="Age at which a version is replaced"
            hint="Such as 12h or 90d; nothing: at no age. The next message after that gets a new version first."
            value={ring.rotateAfter === null ? '' : ageText(ring.rotateAfter * 1000)}
          />
          <Check
            name="deletionAllowed"
            label="It may be deleted"
            hint="Software that holds the flag for it may then delete it, too."
            isOn={ring.deletionAllowed}
          />
        </Form>
      ) : (
        <Facts
          key="show"
          facts={[
            [`${reads} from version`, ring.minDecryptionVersion],
            [`${makes} from version`, ring.minEncryptionVersion === 0 ? 'any' : ring.minEncryptionVersion],
            ['A version serves for', ring.rotateAfter === null ? 'any time' : ageText(ring.rotateAfter * 1000)],
            ['May be deleted', ring.deletionAllowed ? 'yes' : 'no'],
          ]}
        />
      )}
    </section>
  );
}

/** Milliseconds. */
const leastAge = 3_600_000;

function configOf(values: FormValues, { latestVersion }: TransitRing): Config {
  const problems: Record<string, string> = {};
  const version = (name: string, least: number): number => {
    const text = values.text(name).trim();
    const number = /^[0-9]{1,9}$/.test(text) ? Number(text) : Number.NaN;
    if (number >= least && number <= latestVersion) return number;
    problems[name] = `This has to be a whole number from ${least} to ${latestVersion}.`;
    return least;
  };
  const age = values.text('rotateAfter').trim();
  const milliseconds = age === '' ? undefined : parseAge(age);
  if (age !== '' && (milliseconds === undefined || milliseconds < leastAge)) {
    problems.rotateAfter = 'This has to be an age of at least 1h, such as 12h or 90d.';
  }
  const config = {
    minDecryptionVersion: version('minDecryptionVersion', 1),
    minEncryptionVersion: version('minEncryptionVersion', 0),
    deletionAllowed: values.isOn('deletionAllowed'),
    rotateAfter: milliseconds === undefined ? null : milliseconds / 1000,
  };
  if (config.minEncryptionVersion !== 0 && config.minEncryptionVersion < config.minDecryptionVersion) {
    problems.minEncryptionVersion ??= 'This has to be 0, or at least the version above.';
  }
  if (Object.keys(problems).length > 0) throw new FieldProblems(problems);
  return config;
}

interface VersionsProps {
  readonly ring: TransitRing;
  readonly onRefresh: () => void;
}

function Versions({ ring, onRefresh }: VersionsProps) {
  const { versions = [], latestVersion, minDecryptionVersion } = ring;
  const columns: readonly Column<Version>[] = [
    {
      title: 'Version',
      kind: 'name',
      cell: ({ version }) => (
        <>
          {version}{' '}
          {version === latestVersion && (
            <span data-tag data-tone="good">
              latest
            </span>
          )}
        </>
      ),
    },
    { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  const publicKey: Column<Version> = {
    title: 'Public key',
    cell: ({ version, publicKey = '' }) => (
      <Copyable text={publicKey} what={`the public key of version ${version}`} isLong />
    ),
  };
  return (
    <section data-panel>
      <h2>Versions</h2>
      <p data-quiet>
        {minDecryptionVersion > 1
          ? `Messages of versions before ${minDecryptionVersion} are refused, and those versions not shown.`
          : 'Messages of all versions are still read.'}
      </p>
      <DataTable
        caption={`Versions of ${ring.name}`}
        columns={isCipher(ring.type) ? columns : [...columns, publicKey]}
        list={{ items: versions, is: 'ready', hasMore: false, error: undefined, more: () => {}, again: onRefresh }}
        keyOf={({ version }) => String(version)}
        empty={<p>There is no version.</p>}
      />
    </section>
  );
}
