// Parts of an approval request as text: its state, its progress, the operation with a link, and people.
import type { ApprovalRequest } from '../../api/approvals.ts';
import { Actor } from '../activity/record-parts.tsx';
import { hrefTo } from '../navigation.ts';
import { actText, stateWords } from './act-words.ts';

export function RequestState({ request }: { readonly request: ApprovalRequest }) {
  const { label, tone } = stateWords(request);
  return (
    <>
      <span data-tag data-tone={tone}>
        {label}
      </span>
      {request.broken && (
        <span key="broken">
          {' '}
          <span data-tag data-tone="bad">
            glass broken
          </span>
        </span>
      )}
    </>
  );
}

export function RequestLink({ request }: { readonly request: ApprovalRequest }) {
  return (
    <a href={hrefTo('approval', { id: request.id })}>
      <bdi>{actText(request)}</bdi>
    </a>
  );
}

interface PersonProps {
  readonly of: ApprovalRequest['requester'];
  /** Whether it stands inside a sentence. */
  readonly isInside?: boolean;
}

/** A user, API key or administrator, by the name in the answer. */
export function Person({ of: { id, name }, isInside = false }: PersonProps) {
  const names = new Map(name === '' ? [] : [[id, name]]);
  return <Actor keyid={id} names={names} isInside={isInside} />;
}

/** How many approvals it has: `1 of 2`, with a bar. */
export function Progress({ needed, given }: Pick<ApprovalRequest, 'needed' | 'given'>) {
  return (
    <span data-words-given>
      {given} of {needed}
      <meter min={0} max={Math.max(1, needed)} value={given} aria-label={`${given} of ${needed} approvals`}>
        {given} of {needed}
      </meter>
    </span>
  );
}
