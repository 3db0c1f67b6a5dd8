// The versions of a managed key, with their states, which can be changed one by one, and their public keys.
import type { ManagedKey } from '../../api/managed-keys.ts';
import { Button } from '../parts/button.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Select } from '../parts/fields.tsx';
import { toast } from '../parts/messages.tsx';
import { useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Copyable, Time } from '../parts/values.tsx';
import { StateTag } from './managed-key-parts.tsx';
import { type KeyStateProps, movesFrom } from './managed-key-state.tsx';
import { type Dependents, VersionUse } from './managed-key-use.tsx';
import { callersOf, readText, stateWords, versionWords } from './managed-key-words.ts';

type Version = NonNullable<ManagedKey['versions']>[number];

interface VersionsProps extends KeyStateProps {
  readonly onRefresh: () => void;
}

export function ManagedKeyVersions({ onRefresh, ...props }: VersionsProps) {
  const { ring } = props;
  const [asked, setAsked] = useState<Version | undefined>(undefined);
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
  const change: Column<Version> = {
    title: 'Change',
    cell: (version) =>
      movesFrom(version.state).length > 0 && (
        <Button
          kind="quiet"
          needs={`key.${name}.state`}
          label={`Change the state of version ${version.version}`}
          onClick={() => setAsked(version)}
        >
          Change…
        </Button>
      ),
  };
  const words = versionWords(uses);
  return (
    <section data-panel>
      <h2>Versions</h2>
      {words && (
        <p key="about" data-quiet>
          {minDecryptVersion > 1
            ? `What versions before ${minDecryptVersion} made is refused.`
            : `What any version made can still be ${readText(words)}.`}
        </p>
      )}
      <DataTable
        caption={`Versions of ${name}`}
        columns={[...columns, change]}
        list={{ items: versions, is: 'ready', hasMore: false, error: undefined, more: () => {}, again: onRefresh }}
        keyOf={({ version }) => String(version)}
        empty={
          <p>
            There are no versions.
            {origin === 'imported' && ' Import one below, or with kms key import.'}
          </p>
        }
      />
      {versions.map(
        ({ version, publicKey }) =>
          publicKey !== undefined && (
            <details key={version} open={version === primaryVersion}>
              <summary>Public key of version {version}</summary>
              <Copyable text={publicKey} what={`the public key of version ${version}`} isLines isWhole />
            </details>
          ),
      )}
      {asked && (
        <ChangeVersion key={`ask ${asked.version}`} {...props} version={asked} onClose={() => setAsked(undefined)} />
      )}
    </section>
  );
}

interface ChangeVersionProps extends KeyStateProps {
  readonly version: Version;
  readonly onClose: () => void;
}

/** Asks for the new state of one version; the others stay as they are. */
function ChangeVersion({ api, ring, dependents, onChanged, version: { version, state }, onClose }: ChangeVersionProps) {
  const possible = movesFrom(state);
  const [chosen, setChosen] = useState(possible[0]?.move ?? '');
  const move = possible.find((each) => each.move === chosen);
  return (
    <Confirm
      title={`Change version ${version} of ${ring.displayName}?`}
      action="Change the version"
      busy="Changing its state…"
      needs={`key.${ring.name}.state`}
      kind={move?.kind}
      onClose={onClose}
      fields={
        <Select
          name="state"
          label="What happens to it"
          value={chosen}
          onChange={setChosen}
          options={possible.map((each): [string, string] => [each.move, each.button.replace('…', '')])}
        />
      }
      onConfirm={async () => {
        if (!move) return;
        // The dialog has shown who uses it.
        const used = move.stops === true && usesVersion(dependents, version);
        const { key } = await api.setManagedKeyState({
          key: ring.name,
          version,
          state: move.state,
          ...(used && { used }),
        });
        onChanged(key);
        onClose();
        toast(`Version ${version} is ${stateWords(move.state).label}.`);
      }}
    >
      <p>{move?.effect}</p>
      {move?.stops && <VersionUse key="use" of={dependents} first={version} end={version + 1} />}
    </Confirm>
  );
}

function usesVersion(dependents: Dependents, version: number): boolean {
  return dependents.is === 'ready' && callersOf(dependents.value.dependents, version, version + 1).length > 0;
}
