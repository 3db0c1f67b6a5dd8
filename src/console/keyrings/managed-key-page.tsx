// ManagedKeyPage shows one ring whose keys the service holds, with its settings and versions; it rotates or deletes
// it.
import type { ManagedKey } from '../../api/managed-keys.ts';
import { isCipher } from '../../model/transit.ts';
import { baseUrl } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Check, Field } from '../parts/fields.tsx';
import { useAnswer } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Copyable, Facts, Time } from '../parts/values.tsx';
import { managedKeySnippets } from '../snippets/snippet-texts.ts';
import { Snippets } from '../snippets/snippets.tsx';
import { AgeField, type FieldReader, RingPage, RingSettings, ringKinds, servesFor } from './ring-page.tsx';

type Version = NonNullable<ManagedKey['versions']>[number];

export function ManagedKeyPage({ api, navigate, params }: PageProps) {
  const name = params.name ?? '';
  const answer = useAnswer((signal) => api.getManagedKey({ ringname: name }, { signal }));
  return (
    <RingPage
      {...{ name, answer, navigate }}
      kind={ringKinds.managedKey}
      rotate={async () => {
        const changed = await api.rotateManagedKey({ ringname: name });
        answer.set(changed);
        return `It has the new version ${changed.ring.latestVersion}.`;
      }}
      mayBeDeleted={({ deletionAllowed }) => deletionAllowed}
      remove={() => api.deleteManagedKey({ ringname: name })}
      restore={(id) => api.restoreManagedKey({ id })}
      loss="After that, nothing can be encrypted, decrypted, signed or verified with it."
      facts={({ type, derived, latestVersion }) => [
        ['Type', <code>{type}</code>],
        ['Keys are derived', derived ? 'yes, by the context of each message' : 'no'],
        ['Latest version', latestVersion],
      ]}
      show={(ring) => (
        <>
          <Settings
            ring={ring}
            onSave={async (read) => answer.set(await api.configureManagedKey(inputIn(read, ring)))}
          />
          <Versions ring={ring} onRefresh={answer.reload} />
          <Snippets snippets={managedKeySnippets({ baseUrl }, ring)} />
        </>
      )}
    />
  );
}

interface SettingsProps {
  readonly ring: ManagedKey;
  readonly onSave: (read: FieldReader) => Promise<void>;
}

/** Verbs for the two minimum versions. */
function wordsOf({ type }: ManagedKey): { readonly reads: string; readonly makes: string } {
  return isCipher(type) ? { reads: 'Decrypts', makes: 'Encrypts' } : { reads: 'Verifies', makes: 'Signs' };
}

function Settings({ ring, onSave }: SettingsProps) {
  const { reads, makes } = wordsOf(ring);
  return (
    <RingSettings
      kind={ringKinds.managedKey}
      name={ring.name}
      onSave={onSave}
      fields={
        <>
          <Field
            name="minDecryptionVersion"
            label={`${reads} from version`}
            hint={`Messages of older versions are refused until you lower this again; at most ${ring.latestVersion}.`}
            value={String(ring.minDecryptionVersion)}
            isRequired
          />
          <Field
            name="minEncryptionVersion"
            label={`${makes} from version`}
            hint="0: with any version that is still read."
            value={String(ring.minEncryptionVersion)}
            isRequired
          />
          <AgeField
            label="Age at which a version is replaced"
            hint="The next message after that gets a new version first."
            value={ring.rotateAfter}
          />
          <Check
            name="deletionAllowed"
            label="May be deleted"
            hint="Software that has the flag for it can then delete it too."
            isOn={ring.deletionAllowed}
          />
        </>
      }
      shown={
        <Facts
          key="show"
          facts={[
            [`${reads} from version`, ring.minDecryptionVersion],
            [`${makes} from version`, ring.minEncryptionVersion === 0 ? 'any' : ring.minEncryptionVersion],
            ['Age at which a version is replaced', servesFor(ring.rotateAfter)],
            ['May be deleted', ring.deletionAllowed ? 'yes' : 'no'],
          ]}
        />
      }
    />
  );
}

function inputIn(read: FieldReader, { name: ringname, latestVersion }: ManagedKey) {
  const config = {
    ringname,
    minDecryptionVersion: read.wholeNumber('minDecryptionVersion', 1, latestVersion),
    minEncryptionVersion: read.wholeNumber('minEncryptionVersion', 0, latestVersion),
    deletionAllowed: read.values.isOn('deletionAllowed'),
    rotateAfter: read.rotateAfter(),
  };
  if (config.minEncryptionVersion !== 0 && config.minEncryptionVersion < config.minDecryptionVersion) {
    read.note('minEncryptionVersion', 'Enter 0, or at least the version above.');
  }
  read.check();
  return config;
}

interface VersionsProps {
  readonly ring: ManagedKey;
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
          ? `Messages of versions before ${minDecryptionVersion} are refused, and those versions are not shown.`
          : 'Messages of all versions are still read.'}
      </p>
      <DataTable
        caption={`Versions of ${ring.name}`}
        columns={isCipher(ring.type) ? columns : [...columns, publicKey]}
        list={{ items: versions, is: 'ready', hasMore: false, error: undefined, more: () => {}, again: onRefresh }}
        keyOf={({ version }) => String(version)}
        empty={<p>There are no versions.</p>}
      />
    </section>
  );
}
