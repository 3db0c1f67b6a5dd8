// The pages about approval rules: the list, one rule, and the form for a new one. A rule is changed and deleted on its
// page; that may itself need the approvals that the rule asks for.
import type { ApprovalRule } from '../../api/approvals.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button, ButtonLink } from '../parts/button.tsx';
import { Confirm } from '../parts/dialog.tsx';
import { Loaded, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { type Column, DataTable } from '../parts/table.tsx';
import { Copyable, Facts, Moment, Time } from '../parts/values.tsx';
import { Words } from '../parts/words.tsx';
import { countedText, upperFirst } from '../text.ts';
import { windowText } from './act-words.ts';
import { listOf } from './list-of.ts';
import { Person } from './request-parts.tsx';
import { ruleActsText } from './rule-draft.ts';
import { RuleForm } from './rule-form.tsx';

const back = { href: hrefTo('approvalRules'), title: 'Approval rules' };

export function ApprovalRulesPage({ api }: PageProps) {
  const answer = useAnswer(async (signal) => (await api.listApprovalRules({}, { signal })).rules);
  return (
    <>
      <PageHeader
        title="Approval rules"
        back={{ href: hrefTo('approvals'), title: 'Approvals' }}
        lead="Each says which actions need approval, and by whom. They apply to everybody, administrators included."
        actions={
          <ButtonLink href={hrefTo('newApprovalRule')} needs="approval.rule">
            New rule
          </ButtonLink>
        }
      />
      <DataTable
        caption="Approval rules"
        columns={columns}
        list={listOf(answer)}
        keyOf={({ id }) => id}
        empty={<p>No rule concerns you: nothing that you do needs approval, and you approve nothing.</p>}
      />
    </>
  );
}

const columns: readonly Column<ApprovalRule>[] = [
  {
    title: 'Name',
    kind: 'name',
    cell: ({ id, name }) => (
      <a href={hrefTo('approvalRule', { id })}>
        <bdi>{name}</bdi>
      </a>
    ),
  },
  { title: 'What needs approval', cell: ({ actions }) => upperFirst(ruleActsText(actions)) },
  { title: 'Approvers', cell: (rule) => <Approvers of={rule} /> },
  {
    title: 'Needed',
    cell: (rule) => (
      <>
        {rule.count}
        {lacks(rule) && (
          <span key="lack">
            {' '}
            <span data-tag data-tone="bad">
              too few can
            </span>
          </span>
        )}
      </>
    ),
  },
  { title: 'Then', cell: ({ window }) => windowText(window) },
];

/** Whether there are fewer who could approve than the rule needs: then nothing under it can be done. */
function lacks({ able, count }: ApprovalRule): boolean {
  return able < count;
}

function Approvers({ of: { approvers } }: { readonly of: ApprovalRule }) {
  if (approvers.flag !== undefined) {
    return (
      <>
        everybody with <Words text={approvers.flag} />
      </>
    );
  }
  return <People of={approvers.users ?? []} />;
}

function People({ of }: { readonly of: ApprovalRule['breakers'] }) {
  if (of.length === 0) return <span data-quiet>nobody</span>;
  return (
    <ul data-plain data-dense>
      {of.map((person) => (
        <li key={person.id}>
          <Person of={person} />
        </li>
      ))}
    </ul>
  );
}

export function ApprovalRulePage({ api, navigate, params }: PageProps) {
  const { id = '' } = params;
  const answer = useAnswer((signal) => api.getApprovalRule({ id }, { signal }), [id]);
  const [open, setOpen] = useState<'change' | 'vouch' | 'delete' | undefined>(undefined);
  const rule = answer.is === 'ready' ? answer.value : undefined;
  const close = (): void => setOpen(undefined);
  return (
    <>
      <PageHeader
        title={rule?.name ?? 'Approval rule'}
        windowTitle={`Approval rule ${rule?.name ?? ''}`}
        back={back}
        actions={
          rule && (
            <>
              <Button kind="quiet" needs="approval.rule" onClick={() => setOpen('change')}>
                Change
              </Button>
              <Button kind="quiet" needs="approval.rule" onClick={() => setOpen('vouch')}>
                Vouch again…
              </Button>
              <Button kind="danger" needs="approval.rule" onClick={() => setOpen('delete')}>
                Delete…
              </Button>
            </>
          )
        }
      />
      <Loaded
        of={answer}
        show={(found) =>
          open === 'change' ? (
            <RuleForm
              key="change"
              rule={found}
              onClose={close}
              onSave={async (fields) => {
                answer.set(await api.updateApprovalRule({ id: found.id, ...fields }));
                close();
                toast('The rule is saved.');
              }}
            />
          ) : (
            <Rule key="show" rule={found} />
          )
        }
      />
      {rule && open === 'vouch' && (
        <Confirm
          title={`Vouch for the approvers of ${rule.name}?`}
          action="Vouch for them"
          busy="Vouching…"
          onClose={close}
          onConfirm={async () => {
            answer.set(await api.updateApprovalRule({ id: rule.id, vouch: true }));
            close();
            toast('The rule vouches for its approvers as they are now.');
          }}
        >
          <p>
            An approver who came after the rule was made, or to whose account somebody else was given access since,
            cannot approve until the rule vouches for them. Make sure that each account is used by its owner alone.
          </p>
        </Confirm>
      )}
      {rule && open === 'delete' && (
        <Confirm
          title={`Delete the rule ${rule.name}?`}
          action="Delete the rule"
          busy="Deleting it…"
          kind="danger"
          onClose={close}
          onConfirm={async () => {
            await api.deleteApprovalRule({ id: rule.id });
            toast('The rule has been deleted.');
            navigate(hrefTo('approvalRules'), 'replace');
          }}
        >
          <p>What it covers then needs no approval, unless another rule asks for it.</p>
        </Confirm>
      )}
    </>
  );
}

function Rule({ rule }: { readonly rule: ApprovalRule }) {
  const { actions, objects, count, able, mode, window, breakers, expires } = rule;
  return (
    <>
      {lacks(rule) && (
        <p key="lack" role="status" data-note data-tone="bad">
          It needs {countedText(count, 'approval')}, but only {able === 1 ? '1 approver' : `${able} approvers`} could
          approve now. What it covers cannot be done until more can log in and have a second factor.
        </p>
      )}
      <section data-panel>
        <h2>What needs approval</h2>
        <p>{upperFirst(ruleActsText(actions))}.</p>
        <Facts
          facts={[
            ['Actions', <Codes key="acts" texts={actions} />],
            ['On', objects.length === 1 && objects[0] === '*' ? 'any object' : <Codes key="on" texts={objects} />],
          ]}
        />
      </section>
      <section data-panel>
        <h2>Who approves, and how</h2>
        <Facts
          facts={[
            ['Approvers', <Approvers key="who" of={rule} />],
            ['Approvals needed', count],
            ['Could approve now', able],
            ['Own requests', 'only others can approve them'],
            ['Once approved', `it can be done ${windowText(window)}`],
            ['Until then', mode === 'ask' ? 'requests are refused at once' : 'requests wait for up to a minute first'],
            ['May break the glass', <People key="breakers" of={breakers} />],
          ]}
        />
      </section>
      <section data-panel>
        <h2>The rule</h2>
        <Facts
          facts={[
            ['Id', <Copyable key="id" text={rule.id} what="the id of the rule" />],
            ['Ends', <Moment key="ends" at={expires} />],
            ['Made', <Time key="made" at={rule.createdAt} />],
            ['Changed', <Time key="changed" at={rule.updatedAt} />],
            [
              'Activity',
              <a key="log" href={hrefTo('activity', {}, { object: rule.id })}>
                Everything about it
              </a>,
            ],
          ]}
        />
      </section>
    </>
  );
}

function Codes({ texts }: { readonly texts: readonly string[] }) {
  return (
    <ul data-plain data-dense>
      {texts.map((text) => (
        <li key={text}>
          <code data-any>{text}</code>
        </li>
      ))}
    </ul>
  );
}

export function NewApprovalRulePage({ api, navigate }: PageProps) {
  const answer = useAnswer(async (signal) => (await api.listApprovalPresets({}, { signal })).presets);
  return (
    <>
      <PageHeader title="New approval rule" back={back} lead="It applies as soon as it is made." />
      <Loaded
        of={answer}
        show={(presets) => (
          <RuleForm
            presets={presets}
            onSave={async (fields) => {
              const { id } = await api.createApprovalRule(fields);
              navigate(hrefTo('approvalRule', { id }), 'replace');
              toast('The rule applies from now on.');
            }}
          />
        )}
      />
    </>
  );
}
