// The versions of a managed key, with their states and public keys.
import type { ManagedKey } from '../../api/managed-keys.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Copyable, Time } from '../parts/values.tsx';
import { StateTag } from './managed-key-parts.tsx';
import { versionWords } from './managed-key-words.ts';

type Version = NonNullable<ManagedKey['versions']>[number];

interface VersionsProps {
  readonly ring: ManagedKey;
  readonly onRefresh: () => void;
}

export function ManagedKeyVersions({ ring, onRefresh }: VersionsProps) {
  const { name, versions = [], primaryVersion, minDecryptVersion, uses, origin } = ring;
  const columns: readonly Column<Version>[] = [
    {
      title: 'Version',
      kind: 'name',
      cell: ({ version }) => (
        <>
          {version}{' '}
          {version === primaryVersion && (
            <span data-tag data-tone="good">
              primary
            </span>
          )}
        </>
      ),
    },
    { title: 'State', cell: ({ state }) => <StateTag state={state} /> },
    { title: 'Origin', cell: (version) => <span data-whole>{version.origin}</span> },
    { title: 'Created', cell: ({ createdAt }) => <Time at={createdAt} /> },
  ];
  const publicKey: Column<Version> = {
    title: 'Public key',
    cell: ({ version, publicKey: pem }) =>
      pem === undefined ? '' : <Copyable text={pem} what={`the public key of version ${version}`} isLines />,
  };
  const words = versionWords(uses);
  return (
    <section data-panel>
      <h2>Versions</h2>
      {words && (
        <p key="about" data-quiet>
          {minDecryptVersion > 1
            ? `What versions before ${minDecryptVersion} made is refused.`
            : 'What any version made is still read.'}
        </p>
      )}
      <DataTable
        caption={`Versions of ${name}`}
        columns={versions.some((version) => version.publicKey !== undefined) ? [...columns, publicKey] : columns}
        list={{ items: versions, is: 'ready', hasMore: false, error: undefined, more: () => {}, again: onRefresh }}
        keyOf={({ version }) => String(version)}
        empty={
          <p>
            There are no versions.
            {origin === 'imported' && ' Import one with kms key import.'}
          </p>
        }
      />
    </section>
  );
}
