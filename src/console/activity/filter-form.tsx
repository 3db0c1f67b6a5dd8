// The filters of an activity search, as a form.
import { Field, TextArea } from '../parts/form.tsx';
import { SearchForm } from '../parts/search-form.tsx';
import { Select } from '../parts/select.tsx';
import { shownTime } from '../search-fields.ts';
import { actionNames } from './action-names.ts';
import { activityFields, type FilterFields } from './filter-query.ts';

export interface FilterFormProps {
  readonly fields: FilterFields;
  /** With fields that make sense. */
  readonly onSearch: (fields: FilterFields) => void;
  readonly clearHref: string;
}

export function FilterForm({ fields, onSearch, clearHref }: FilterFormProps) {
  const { accountUid, accountId, keyid, props } = fields;
  const hasMore = [accountUid, accountId, keyid, props].some((value) => value !== '');
  return (
    <SearchForm search={activityFields} onSearch={onSearch} clearHref={clearHref}>
      <datalist id="action-names">
        {actionNames.map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <div data-columns>
        <Field name="action" label="Action" value={fields.action} list="action-names" />
        <Field name="ring" label="Ring" value={fields.ring} />
        <Select name="valid" label="Verdict" value={fields.valid} options={verdicts} />
        <Field name="start" label="From, in UTC" type="datetime-local" value={shownTime(fields.start)} />
        <Field name="end" label="Until, in UTC" type="datetime-local" value={shownTime(fields.end)} />
      </div>
      <details open={hasMore || undefined}>
        <summary>More filters</summary>
        <div data-columns>
          <Field name="keyid" label="By" value={keyid} hint="The id of an API key, or of a user who was logged in." />
          <Field name="accountUid" label="Account, by its UID" value={accountUid} />
          <Field name="accountId" label="Account, by its id" value={accountId} />
        </div>
        <TextArea
          name="props"
          label="Properties"
          value={props}
          isCode
          hint='A JSON object that the record has to contain, such as {"order": 17}.'
        />
      </details>
    </SearchForm>
  );
}

const verdicts = [
  ['', 'Granted or denied'],
  ['true', 'Granted'],
  ['false', 'Denied'],
] as const;
