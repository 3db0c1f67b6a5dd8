// ActsEditor chooses the actions that need approval: flags of the table, on one ring or on all; actions that are no
// flags; and others by name.
import { useId } from 'hono/jsx/dom';
import { parseFlags } from '../../model/flags.ts';
import { flagGroups, wildcard } from '../flags/draft.ts';
import { FlagGroupChoice } from '../flags/flag-editor.tsx';
import { useNamesByResource } from '../known-names.ts';
import { TextArea } from '../parts/fields.tsx';
import { actionsOf, furtherTexts, type RuleDraft, ruleActsText } from './rule-draft.ts';

interface ActsEditorProps {
  readonly draft: RuleDraft;
  readonly onChange: (draft: RuleDraft) => void;
}

/** A rule may name any action, whatever its maker may do. */
const everything = parseFlags({ [wildcard]: true });

export function ActsEditor({ draft, onChange }: ActsEditorProps) {
  const names = useNamesByResource();
  const text = ruleActsText(actionsOf(draft));
  return (
    <div data-flags>
      <p role="status" data-note data-abilities>
        {text === '' ? 'Nothing chosen yet.' : `Needs approval: ${text}.`}
      </p>
      {[...furtherTexts].map(([action, grants]) => (
        <FurtherAct
          key={action}
          {...{ action, grants }}
          isOn={draft.further.includes(action)}
          onChange={(isOn) => {
            const rest = draft.further.filter((each) => each !== action);
            onChange({ ...draft, further: isOn ? [...rest, action] : rest });
          }}
        />
      ))}
      {flagGroups.map((group) => (
        <FlagGroupChoice
          key={group.resource}
          {...{ group, names }}
          draft={draft.acts}
          coverage={everything}
          verb="Choose"
          onChange={(acts) => onChange({ ...draft, acts })}
        />
      ))}
    </div>
  );
}

interface FurtherActProps {
  readonly action: string;
  readonly grants: string;
  readonly isOn: boolean;
  readonly onChange: (isOn: boolean) => void;
}

function FurtherAct({ action, grants, isOn, onChange }: FurtherActProps) {
  const id = useId();
  return (
    <div data-choice>
      <input
        id={id}
        type="checkbox"
        checked={isOn}
        onChange={(event: Event) => onChange((event.target as HTMLInputElement).checked)}
      />
      <label for={id}>
        <code>{action}</code> <span>{grants}</span>
      </label>
    </div>
  );
}

/** Actions by name, one per line; read when the form is sent. */
export function NamedActs({ named }: { readonly named: readonly string[] }) {
  return (
    <TextArea
      name="actions"
      label="More actions, by name"
      hint="Flag names, one per line, such as approval.*."
      value={named.join('\n')}
      rows={2}
      isCode
    />
  );
}
