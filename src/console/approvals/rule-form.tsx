// RuleForm makes or changes an approval rule: which actions need approval, and by whom. Presets fill it in.
import type { ApprovalRule } from '../../api/approvals.ts';
import type { AnswerTo, InputOf } from '../../client/client.ts';
import { defaultObjects, mostWords } from '../../model/approval-rules.ts';
import { Button, CancelButton } from '../parts/button.tsx';
import { Choice, Field, Select, TextArea } from '../parts/fields.tsx';
import { Form } from '../parts/form.tsx';
import { useState } from '../parts/state.ts';
import { localForm } from '../text.ts';
import { ActsEditor, NamedActs } from './acts-editor.tsx';
import { PeopleField } from './people-field.tsx';
import { actsDraft, type RuleDraft, ruleDraftOf, ruleIn, usualFlag, windowOptions } from './rule-draft.ts';

type Preset = AnswerTo<'listApprovalPresets'>['presets'][number];

interface RuleFormProps {
  /** The rule to change; without it, one is made. */
  readonly rule?: ApprovalRule;
  readonly presets?: readonly Preset[];
  readonly onSave: (fields: InputOf<'createApprovalRule'>) => Promise<void>;
  readonly onClose?: () => void;
}

const approverOptions = [
  { value: 'flag', label: 'Everybody with a certain flag', hint: 'Those who have the flag at that moment.' },
  { value: 'users', label: 'These users' },
] as const;

const modeOptions: readonly { readonly value: ApprovalRule['mode']; readonly label: string; readonly hint: string }[] =
  [
    { value: 'ask', label: 'Refuse at once', hint: 'The requester tries again once it is approved.' },
    {
      value: 'hold',
      label: 'Let it wait for a minute first',
      hint: 'For programs: if the approval comes within 60 seconds, they only notice a delay.',
    },
  ];

export function RuleForm({ rule, presets = [], onSave, onClose }: RuleFormProps) {
  const [draft, setDraft] = useState<RuleDraft>(() => ruleDraftOf(rule));
  const [preset, setPreset] = useState<Preset | undefined>(undefined);
  const { window = 'once', expires = null, objects = defaultObjects, approvers = {} } = rule ?? {};
  return (
    <Form
      action={rule ? 'Save the rule' : 'Make the rule'}
      busy="Saving it…"
      needs="approval.rule"
      onSubmit={(values) => onSave(ruleIn(values, draft))}
      beside={onClose && <CancelButton onClick={onClose} />}
    >
      {presets.length > 0 && (
        <Presets
          presets={presets}
          onChoose={(chosen) => {
            setPreset(chosen);
            setDraft({ ...draft, ...actsDraft(chosen.actions) });
          }}
        />
      )}
      <Field
        key={`name ${preset?.name ?? ''}`}
        name="name"
        label="Name"
        value={preset?.title ?? rule?.name ?? ''}
        hint="A name for people."
        isRequired
      />
      <h2>What needs approval</h2>
      <ActsEditor draft={draft} onChange={setDraft} />
      <NamedActs key={`acts ${preset?.name ?? ''}`} named={draft.named} />
      <TextArea
        name="objects"
        label="Only on these objects"
        hint="Names or ids, one per line; * stands for any characters. A single * means any object."
        value={objects.join('\n')}
        rows={2}
        isCode
      />
      <h2>Who approves</h2>
      <Choice
        legend="Approvers"
        name="by"
        options={approverOptions}
        chosen={draft.by}
        onChange={(by) => setDraft({ ...draft, by })}
      />
      {draft.by === 'flag' ? (
        <Field key="flag" name="flag" label="Flag" value={approvers.flag ?? usualFlag} isRequired />
      ) : (
        <PeopleField
          key="users"
          name="approver"
          legend="Users who approve"
          hint="Nobody approves their own requests, so name more users than are needed."
          people={draft.users}
          onChange={(users) => setDraft({ ...draft, users })}
        />
      )}
      <Field
        name="count"
        type="number"
        label="How many of them must approve"
        hint={`From 1 to ${mostWords}.`}
        value={String(rule?.count ?? 1)}
        isRequired
      />
      <h2>How it goes</h2>
      <Select
        name="window"
        label="Once it is approved, it can be done"
        options={windowOptions(window)}
        value={String(window)}
      />
      <Choice
        legend="A request that needs approval"
        name="mode"
        options={modeOptions}
        chosen={draft.mode}
        onChange={(mode) => setDraft({ ...draft, mode })}
      />
      <PeopleField
        name="breaker"
        legend="Users who may break the glass"
        hint="In an emergency they may do without approval; everybody is told. Leave it empty for nobody."
        people={draft.breakers}
        onChange={(breakers) => setDraft({ ...draft, breakers })}
      />
      <Field
        name="expires"
        type="datetime-local"
        label="The rule ends"
        hint="Leave it empty if it never ends."
        value={expires === null ? '' : localForm(new Date(expires)).slice(0, 16)}
      />
    </Form>
  );
}

interface PresetsProps {
  readonly presets: readonly Preset[];
  readonly onChoose: (preset: Preset) => void;
}

function Presets({ presets, onChoose }: PresetsProps) {
  return (
    <div data-flags>
      <fieldset data-presets>
        <legend>Start from</legend>
        {presets.map((preset) => (
          <Button key={preset.name} kind="quiet" onClick={() => onChoose(preset)}>
            {preset.title}
          </Button>
        ))}
      </fieldset>
    </div>
  );
}
