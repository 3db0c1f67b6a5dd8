// Timeline shows records of the activity log as sentences, grouped by day, with an export of the records shown.
import type { Child } from 'hono/jsx/dom';
import { saveAs } from '../files/saving.ts';
import { hrefTo } from '../navigation.ts';
import type { List } from '../parts/state.ts';
import { ListEnd } from '../parts/table.tsx';
import { Clock } from '../parts/values.tsx';
import { countText } from '../text.ts';
import { approvalDetailsOf, approvalWordsOf } from './approval-words.ts';
import { csv, jsonLines } from './export.ts';
import { keyDetailsOf, keyWordsOf } from './key-words.ts';
import { moreText } from './more-things.ts';
import { isProgramLogin, proofDetailsOf, proofWordsOf } from './proof-words.ts';
import { Actor, From, Program, ringOf, ThingLink } from './record-parts.tsx';
import { type ActivityRecord, alikeTogether, deedOfRecord, type Names, namesWith } from './records.ts';
import { typeNames } from './type-names.ts';
import { detailTexts, type Outcome, outcomeOf, statusText, wordsOfRecord } from './words.ts';

interface RecordsProps {
  readonly list: List<ActivityRecord>;
  readonly names: Names;
  readonly empty: string;
}

/** Records in pages. */
export function Records({ list, names, empty }: RecordsProps) {
  const { items, is } = list;
  return (
    <div data-list aria-busy={is === 'loading' ? 'true' : undefined}>
      {items.length > 0 && <Export key="export" records={items} names={names} />}
      {items.length > 0 && <Timeline key="rows" title="Activity, newest first" records={items} names={names} />}
      <ListEnd key="end" list={list} empty={<p>{empty}</p>} />
    </div>
  );
}

/** Saves the records shown, and no more. */
export function Export({ records, names }: { readonly records: readonly ActivityRecord[]; readonly names: Names }) {
  const name = (): string => `activity-${new Date().toISOString().slice(0, 19).replaceAll(':', '')}`;
  const what = records.length === 1 ? 'the record' : `the ${countText(records.length)} records`;
  return (
    <p data-actions data-export>
      <span>Save {what} shown here as</span>
      <button type="button" data-kind="quiet" onClick={() => saveAs(`${name()}.jsonl`, jsonLines(records))}>
        JSON Lines
      </button>
      <button
        type="button"
        data-kind="quiet"
        onClick={() => saveAs(`${name()}.csv`, csv(records, namesWith(names, records)))}
      >
        CSV
      </button>
    </p>
  );
}

interface TimelineProps {
  /** For screen readers. */
  readonly title: string;
  /** Newest first. */
  readonly records: readonly ActivityRecord[];
  readonly names: Names;
}

/** Records as sentences, grouped by day. */
export function Timeline({ title, records, names }: TimelineProps) {
  const known = namesWith(names, records);
  const days = new Map<string, ActivityRecord[]>();
  for (const record of records) {
    const day = dayOf(record.createdAt);
    const others = days.get(day);
    if (others) others.push(record);
    else days.set(day, [record]);
  }
  return (
    <section aria-label={title} data-timeline>
      {[...days].map(([day, ofDay]) => (
        <div key={day}>
          <h2>{day}</h2>
          <ol>
            {alikeTogether(ofDay).map((group) => (
              <Entry key={group.at(-1)?.id} records={group} names={known} />
            ))}
          </ol>
        </div>
      ))}
    </section>
  );
}

function dayOf(at: number): string {
  const long = { weekday: 'long', day: 'numeric', month: 'long', year: 'numeric' } as const;
  return new Date(at).toLocaleDateString('en-GB', long);
}

interface EntryProps {
  /** Records that differ in time only, newest first. */
  readonly records: readonly ActivityRecord[];
  readonly names: Names;
}

function Entry({ records, names }: EntryProps) {
  const [record, ...others] = records;
  if (!record) return null;
  const { id, createdAt, reporter } = record;
  const outcome = outcomeOf(record);
  const details = [
    ...detailTexts(deedOfRecord(record)).filter((detail) => detail !== 'changed: state'),
    ...keyDetailsOf(record),
    ...proofDetailsOf(record),
    ...approvalDetailsOf(record, names),
  ];
  return (
    <li data-outcome={outcome}>
      <a href={hrefTo('activityRecord', { id })}>
        <Clock at={createdAt} />
      </a>
      <div>
        <p>
          {isProgramLogin(record) ? (
            <span key="program">
              <Program record={record} /> <Did record={record} names={names} outcome={outcome} /> as{' '}
              <Actor keyid={record.keyid} names={names} isInside />
            </span>
          ) : (
            <span key="caller">
              <Actor keyid={record.keyid} names={names} /> <Did record={record} names={names} outcome={outcome} />
            </span>
          )}{' '}
          {outcome === 'denied' && (
            <span data-tag data-tone="bad">
              denied
            </span>
          )}
          {outcome === 'waiting' && (
            <span data-tag data-tone="warn">
              waits for approval
            </span>
          )}
          {outcome === 'failed' && (
            <span data-tag data-tone="warn">
              {statusText(record)}
            </span>
          )}
          {others.length > 0 && <span data-tag>{countText(records.length)} times</span>}
        </p>
        <p data-quiet>
          {reporter === undefined ? (
            <span key="from">
              from <From record={record} />
            </span>
          ) : (
            <span key="reporter">
              reported by <Actor keyid={reporter} names={names} isInside />
            </span>
          )}
          {details.map((detail) => (
            <span key={detail}>
              {' · '}
              <bdi>{detail}</bdi>
            </span>
          ))}
        </p>
        {others.length > 0 && <Others records={others} />}
      </div>
    </li>
  );
}

function Others({ records }: { readonly records: readonly ActivityRecord[] }) {
  return (
    <details>
      <summary>{records.length === 1 ? '1 more time' : `${countText(records.length)} more times`}</summary>
      <ul>
        {records.map(({ id, createdAt }) => (
          <li key={id}>
            <a href={hrefTo('activityRecord', { id })}>
              <Clock at={createdAt} />
            </a>
          </li>
        ))}
      </ul>
    </details>
  );
}

interface SaidProps {
  readonly record: ActivityRecord;
  readonly names: Names;
}

interface DidProps extends SaidProps {
  readonly outcome: Outcome;
}

function saidOf(record: ActivityRecord) {
  return approvalWordsOf(record) ?? keyWordsOf(record) ?? proofWordsOf(record) ?? wordsOfRecord(record);
}

/** A sentence's predicate, such as `deleted the user ada` or `tried to log in`. */
function Did({ record, names, outcome }: DidProps) {
  const { action, reporter } = record;
  const words = reporter === undefined ? saidOf(record) : undefined;
  if (!words) {
    return (
      <span>
        {outcome === 'done' ? 'did ' : 'tried '}
        <bdi>
          <code data-any>{action}</code>
        </bdi>{' '}
        <What record={record} names={names} none="" />
      </span>
    );
  }
  return (
    <span>
      {outcome === 'done' ? words.past : `tried to ${words.base}`}{' '}
      {words.things !== '' && <What record={record} names={names} none={words.things} />}
      {'after' in words && ` ${words.after}`}
    </span>
  );
}

interface WhatProps extends SaidProps {
  /** Text for records that name nothing. */
  readonly none: string;
}

function What({ record, names, none }: WhatProps): Child {
  const { action, ringname } = record;
  const deed = deedOfRecord(record);
  const first = deed.object ?? deed.objects?.[0];
  if (first) {
    return (
      <span>
        <ThingLink thing={first} names={names} />
        {moreText(deed)}
      </span>
    );
  }
  if (ringname === '') return <span>{none}</span>;
  const { type, href } = ringOf(action, ringname);
  return (
    <span>
      {typeNames[type] ?? type}{' '}
      <a href={href}>
        <bdi>{ringname}</bdi>
      </a>
    </span>
  );
}
