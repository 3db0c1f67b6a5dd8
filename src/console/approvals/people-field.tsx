// PeopleField is a list of users that grows by one name at a time. It suggests names if the reader may list users.
import { useContext, useId, useRef } from 'hono/jsx/dom';
import { useUsers } from '../known-names.ts';
import { ProblemContext, Proposals } from '../parts/fields.tsx';
import { announce } from '../parts/messages.tsx';

interface PeopleFieldProps {
  /** Name of the input for the next user. */
  readonly name: string;
  readonly legend: string;
  readonly hint: string;
  /** Names or ids. */
  readonly people: readonly string[];
  readonly onChange: (people: readonly string[]) => void;
}

export function PeopleField({ name, legend, hint, people, onChange }: PeopleFieldProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const problem = useContext(ProblemContext)[name];
  const users = [...useUsers().values()].map(({ username }) => username);
  const add = (): void => {
    const typed = input.current?.value.trim() ?? '';
    if (typed === '' || !input.current) return;
    input.current.value = '';
    if (people.some((each) => each.toLowerCase() === typed.toLowerCase())) return;
    onChange([...people, typed]);
    announce(`${typed} is added.`);
  };
  return (
    <fieldset data-plain-fieldset data-people>
      <legend>{legend}</legend>
      <p id={`${id}-hint`} data-hint>
        {hint}
      </p>
      {people.length > 0 && (
        <ul aria-label={legend} data-plain>
          {people.map((each) => (
            <li key={each} data-person>
              <bdi>{each}</bdi>{' '}
              <button
                type="button"
                data-kind="link"
                aria-label={`Remove ${each}`}
                onClick={() => onChange(people.filter((other) => other !== each))}
              >
                Remove
              </button>
            </li>
          ))}
        </ul>
      )}
      <div data-adding>
        <input
          ref={input}
          id={id}
          name={name}
          list={`${id}-names`}
          aria-label={`${legend}: user name`}
          autocomplete="off"
          autocapitalize="none"
          spellcheck={false}
          aria-invalid={problem === undefined ? undefined : 'true'}
          aria-describedby={`${id}-hint ${id}-problem`}
          onKeyDown={(event: KeyboardEvent) => {
            if (event.key !== 'Enter') return;
            event.preventDefault();
            add();
          }}
        />
        <button type="button" data-kind="quiet" onClick={add}>
          Add
        </button>
      </div>
      <Proposals id={`${id}-names`} texts={users.filter((user) => !people.includes(user))} />
      <p id={`${id}-problem`} data-problem>
        {problem}
      </p>
    </fieldset>
  );
}
