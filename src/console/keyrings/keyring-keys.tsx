// KeyringKeys lists the keys of a keyring, newest first, with their uses, which show when an old key is no longer
// needed.
import type { KeyListItem, KeyRing } from '../../api/keyrings.ts';
import type { AnswerTo, Client } from '../../client/client.ts';
import { recentDays, recentUses } from '../../model/key-usage.ts';
import { Actor } from '../activity/record-parts.tsx';
import { useActorNames } from '../known-names.ts';
import { useBegunList, useWhole } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Day, Json } from '../parts/values.tsx';
import { countText, kemText } from '../text.ts';

type Names = ReadonlyMap<string, string>;

interface KeyringKeysProps {
  readonly api: Client;
  readonly ring: KeyRing;
  /** Those that came with the keyring. */
  readonly begun: AnswerTo<'getKeyring'>['keys'];
}

export function KeyringKeys({ api, ring: { name, activeKey, publicKey }, begun }: KeyringKeysProps) {
  // The service lists the oldest first, so that the newest are known once all are loaded.
  const list = useWhole(
    useBegunList(begun, (page, signal) => api.listKeys({ ringname: name, usage: true, ...page }, { signal }), {
      limit: 1000,
    }),
  );
  const isBehind = list.items.some((key) => key.id === activeKey && key.publicKey !== publicKey);
  const names = useActorNames();
  const columns: readonly Column<KeyListItem>[] = [
    {
      title: 'Key',
      kind: 'name',
      cell: ({ id }) => (
        <>
          <code>{id}</code>{' '}
          {id === activeKey && (
            <span data-tag data-tone="good">
              active
            </span>
          )}
        </>
      ),
    },
    { title: 'Wrapped with', cell: ({ kem: by }) => kemText(by) },
    { title: 'Created', cell: ({ createdAt }) => <Day at={createdAt} /> },
    {
      title: 'Used',
      cell: ({ usage }) => (
        <>
          <p>
            <Uses usage={usage} kind="encrypt" names={names} />
          </p>
          <p>
            <Uses usage={usage} kind="decrypt" names={names} />
          </p>
        </>
      ),
    },
    { title: 'Properties', cell: ({ props }) => <Json value={props} /> },
  ];
  return (
    <section data-panel>
      <h2>Keys</h2>
      <p data-quiet>
        What was encrypted with an earlier key stays readable. You can do without one once nothing has been decrypted
        with it for longer than your data ever lies unread.
      </p>
      {isBehind && (
        <p data-note data-tone="warn">
          The active key is still wrapped to the earlier public key. Rotate the keyring, so that future encrypts use a
          key wrapped to the new one.
        </p>
      )}
      <DataTable
        caption={`Keys of ${name}`}
        columns={columns}
        list={{ ...list, items: list.items.toReversed() }}
        keyOf={({ id }) => id}
        fold={10}
        empty={<p>There are no keys.</p>}
      />
    </section>
  );
}

interface UsesProps {
  readonly usage: KeyListItem['usage'];
  readonly kind: 'encrypt' | 'decrypt';
  readonly names: Names;
}

/** Recent uses of a key and its last user, or the time since which it was not used. */
function Uses({ usage, kind, names }: UsesProps) {
  if (!usage) return <span data-quiet>not known</span>;
  const [at, by] =
    kind === 'encrypt' ? [usage.lastEncryptAt, usage.lastEncryptBy] : [usage.lastDecryptAt, usage.lastDecryptBy];
  const recent = recentUses(usage.days, Date.now())[`${kind}s`];
  const since = at ?? usage.since;
  if (since === null) return <span data-quiet>Its uses are not counted yet.</span>;
  const who = by !== null && <Actor keyid={by} names={names} isInside />;
  if (recent === 0) {
    return (
      <span>
        Nothing has been {kind}ed with this key since <Day at={since} />
        {who && <>, when it was last used by {who}</>}.
      </span>
    );
  }
  return (
    <span>
      {kind === 'encrypt' ? 'Encrypted' : 'Decrypted'} {recent === 1 ? 'once' : `${countText(recent)} times`} in the
      last {recentDays} days, most recently on <Day at={since} />
      {who && <> by {who}</>}.
    </span>
  );
}
