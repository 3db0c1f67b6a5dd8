// ActivityRecordPage shows one record of the activity log with all its fields.
import { proofChangeText, provedIn } from '../../model/activity-details.ts';
import { useActorNames } from '../known-names.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Loaded } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAnswer } from '../parts/state.ts';
import { Facts, Json, Time } from '../parts/values.tsx';
import { approvalNoteOf, factorText } from './approval-words.ts';
import { isAboutKey } from './key-actions.ts';
import { Actor, From, ringOf, subjectHref, ThingLink, Verdict } from './record-parts.tsx';
import { type ActivityRecord, deedOfRecord } from './records.ts';
import { otherChanges, stateText, statusText } from './words.ts';

export function ActivityRecordPage({ api, params }: PageProps) {
  const { id = '' } = params;
  const answer = useAnswer((signal) => api.getActivity({ id }, { signal }), [id]);
  const names = useActorNames();
  return (
    <>
      <PageHeader title="Activity record" back={{ href: hrefTo('activity'), title: 'Activity' }} />
      <Loaded of={answer} show={(record) => <Record record={record} names={names} />} />
    </>
  );
}

interface RecordProps {
  readonly record: ActivityRecord;
  readonly names: ReadonlyMap<string, string>;
}

function Record({ record, names }: RecordProps) {
  const { id, keyid, createdAt, action, ringname, status, props, address, reporter } = record;
  const { keyVersion, fromKeyVersion } = deedOfRecord(record);
  const { proof, subject } = reporter === undefined ? provedIn(props) : {};
  const { type: ringKind, href: ringHref } = ringOf(action, ringname);
  const ring = ringname === '' ? undefined : subjectHref({ type: ringKind, id: '', name: ringname });
  return (
    <>
      <section data-panel>
        <Facts
          facts={[
            ['Id', <code key="id">{id}</code>],
            ['When', <Time key="when" at={createdAt} />],
            ['Who', <Actor key="who" keyid={keyid} names={names} />],
            subject !== undefined && [
              'Proved by',
              <bdi key="subject">
                <code data-any>{subject}</code>
              </bdi>,
            ],
            proof !== undefined && ['Proof', <code key="proof">{proof}</code>],
            ['From', <From key="from" record={record} />],
            ['Action', <code key="action">{action}</code>],
            ringname !== '' && [
              isAboutKey(action) ? 'Managed key' : 'Keyring',
              <a key="ring" href={ringHref}>
                <bdi>{ringname}</bdi>
              </a>,
            ],
            keyVersion !== undefined && ['Key version', keyVersion],
            fromKeyVersion !== undefined && ['Read with key version', fromKeyVersion],
            ['Verdict', <Verdict key="verdict" record={record} />],
            ['Status', `${status}: ${statusText(record)}`],
            reporter !== undefined && ['Reported by', <Actor key="reporter" keyid={reporter} names={names} />],
          ]}
        />
      </section>
      <Done record={record} names={names} />
      <Approval record={record} names={names} />
      <section data-panel>
        <h2>Properties</h2>
        <Json value={props} />
      </section>
      <p>
        <a href={credentialHref(keyid)}>All activity of the same credential</a>
      </p>
      {ring && (
        <p>
          <a href={ring}>All activity of the same keyring</a>
        </p>
      )}
      {address !== undefined && (
        <p>
          <a href={hrefTo('activity', {}, { address })}>All activity from the same address</a>
        </p>
      )}
    </>
  );
}

/** The request's effect; nothing for reads and for refused requests. */
function Done({ record, names }: RecordProps) {
  const deed = deedOfRecord(record);
  const { object, objects = [], objectCount, proofChange, granted = [], revoked = [] } = deed;
  const changed = otherChanges(deed);
  const state = stateText(deed);
  if (!object && objects.length === 0) return null;
  return (
    <section data-panel>
      <h2>What was done</h2>
      <Facts
        facts={[
          object && ['Object', <ThingLink key="object" thing={object} names={names} />],
          objects.length > 0 && [
            object ? 'Also affected' : 'Objects',
            <ul key="objects">
              {objects.map((thing) => (
                <li key={thing.id}>
                  <ThingLink thing={thing} names={names} />
                </li>
              ))}
              {objectCount !== undefined && objectCount > objects.length && (
                <li key="more">and {objectCount - objects.length} more</li>
              )}
            </ul>,
          ],
          state !== undefined && ['State', state],
          proofChange !== undefined && ['The proof was', proofChangeText(proofChange)],
          changed.length > 0 && ['Changed', <Texts key="changed" texts={changed} />],
          granted.length > 0 && ['Flags granted', <Texts key="granted" texts={granted} />],
          revoked.length > 0 && ['Flags revoked', <Texts key="revoked" texts={revoked} />],
        ]}
      />
      {object && (
        <p>
          <a href={subjectHref(object) ?? hrefTo('activity', {}, { object: object.id })}>Everything about it</a>
        </p>
      )}
    </section>
  );
}

/** The approval that the record is about, was done with, or waits for. */
function Approval({ record, names }: RecordProps) {
  const note = approvalNoteOf(record);
  if (!note) return null;
  const { id, glass, reason, factor, isSigned, use, approvers, asked } = note;
  return (
    <section data-panel>
      <h2>Approval</h2>
      <Facts
        facts={[
          id !== undefined && [
            'Request',
            <a key="request" href={hrefTo('approval', { id })}>
              <code data-any>{id}</code>
            </a>,
          ],
          asked !== undefined && ['Permission', <code key="asked">{asked}</code>],
          factor !== undefined && ['Proved by', factorText(factor)],
          isSigned && ['Signature', 'a passkey signed exactly this request'],
          approvers.length > 0 && [
            'Approved by',
            <ul key="approvers" data-plain data-dense>
              {approvers.map((approver) => (
                <li key={approver}>
                  <Actor keyid={approver} names={names} />
                </li>
              ))}
            </ul>,
          ],
          use !== undefined && ['Done with this approval', use === 1 ? 'for the first time' : `${use} times so far`],
          glass !== undefined && [
            'Without approval',
            <a key="glass" href={hrefTo('brokenGlass')}>
              the glass was broken
            </a>,
          ],
          reason !== undefined && ['Why', <bdi key="why">{reason}</bdi>],
        ]}
      />
    </section>
  );
}

function Texts({ texts }: { readonly texts: readonly string[] }) {
  return (
    <ul>
      {texts.map((text) => (
        <li key={text}>
          <code data-any>{text}</code>
        </li>
      ))}
    </ul>
  );
}

/** The page about an API key or user; for other callers, a search of the log. */
function credentialHref(keyid: string): string {
  const type = keyid.startsWith('apik_') ? 'apikey' : keyid.startsWith('user_') ? 'user' : undefined;
  return (type && subjectHref({ type, id: keyid })) ?? hrefTo('activity', {}, { keyid });
}
