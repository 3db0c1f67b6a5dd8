// ManagedKeyPage shows one key that the service holds: what it is, who uses it, its state, settings and versions; it
// rotates or deletes it.
import type { ManagedKey } from '../../api/managed-keys.ts';
import { baseUrl } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { useAnswer } from '../parts/state.ts';
import { type Fact, Time } from '../parts/values.tsx';
import { managedKeySnippets } from '../snippets/key-snippets.ts';
import { Snippets } from '../snippets/snippets.tsx';
import { ManagedKeyAliases } from './managed-key-aliases.tsx';
import { StateTag, UseTags } from './managed-key-parts.tsx';
import { ManagedKeySettings } from './managed-key-settings.tsx';
import { DeleteKey, KeyStatePanel } from './managed-key-state.tsx';
import { ManagedKeyTransfer } from './managed-key-transfer.tsx';
import { type Dependents, ManagedKeyUse, UseNotice } from './managed-key-use.tsx';
import { ManagedKeyVersions } from './managed-key-versions.tsx';
import { kmipText, rotationText } from './managed-key-words.ts';
import { RingPage, ringKinds } from './ring-page.tsx';

export function ManagedKeyPage({ api, navigate, params }: PageProps) {
  const name = params.name ?? '';
  const answer = useAnswer(async (signal) => {
    const { key: ring, dependents = [] } = await api.getManagedKey({ key: name, dependents: true }, { signal });
    return { ring, dependents };
  });
  const dependents: Dependents = answer;
  const onChanged = (ring: ManagedKey): void => {
    answer.set({ ring, dependents: answer.is === 'ready' ? answer.value.dependents : [] });
  };
  return (
    <RingPage
      {...{ name, answer, navigate }}
      kind={ringKinds.managedKey}
      rotate={async () => {
        const { key } = await api.rotateManagedKey({ key: name });
        onChanged(key);
        return `It has the new version ${key.latestVersion}.`;
      }}
      rotation={({ uses }) => rotationText(uses)}
      mayBeRotated={({ state, kmip }) => (state === 'active' || state === 'pre-active') && kmip?.owner === undefined}
      mayBeDeleted={({ state }) => !isGoing(state)}
      deletion={(ring, onClose) => <DeleteKey {...{ api, ring, dependents, navigate, onClose }} />}
      use={() => <UseNotice of={dependents} isTold />}
      facts={factsOf}
      show={(ring) => (
        <>
          <KeyStatePanel {...{ api, ring, dependents, onChanged }} />
          <ManagedKeyUse name={ring.name} of={dependents} />
          {!isGoing(ring.state) && (
            <div key="alive">
              <ManagedKeyAliases {...{ api, ring, onChanged }} />
              <ManagedKeySettings {...{ api, ring, dependents, onChanged }} />
            </div>
          )}
          <ManagedKeyVersions {...{ api, ring, dependents, onChanged }} onRefresh={answer.reload} />
          {!isGoing(ring.state) && <ManagedKeyTransfer key="transfer" {...{ api, ring, onChanged }} />}
          <Snippets snippets={managedKeySnippets({ baseUrl }, ring)} />
        </>
      )}
    />
  );
}

function isGoing(state: ManagedKey['state']): boolean {
  return state === 'pending-deletion' || state === 'destroyed';
}

function factsOf(ring: ManagedKey): readonly Fact[] {
  const { type, uses, state, derived, latestVersion, origin, exportable, aliases, tags } = ring;
  const { activateAt, deactivateAt } = ring;
  const names = Object.entries(tags);
  return [
    ['Type', <code>{type}</code>],
    ['Uses', <UseTags uses={uses.filter((use) => use !== 'export' || exportable)} />],
    ['State', <StateTag state={state} />],
    aliases.length > 0 && ['Aliases', aliases.join(', ')],
    derived && ['Keys are derived', 'by the context of each message'],
    ['Latest version', latestVersion === 0 ? 'none yet' : latestVersion],
    ['Origin', origin === 'imported' ? 'imported' : 'made here'],
    ['Export', exportable ? 'may be exported' : 'never leaves the service'],
    ring.allowPlaintextFormat !== undefined && ['Also opens', 'messages that Vault made with the same key'],
    activateAt !== null && ['Becomes active', <Time at={activateAt} />],
    deactivateAt !== null && ['Is deactivated', <Time at={deactivateAt} />],
    ring.aws !== undefined && ['For AWS', <code>{`${ring.aws.account}:key/${ring.aws.keyId}`}</code>],
    ring.kmip !== undefined && ['For KMIP', kmipText(ring.kmip)],
    names.length > 0 && ['Tags', names.map(([tag, text]) => `${tag}: ${String(text)}`).join(', ')],
  ];
}
