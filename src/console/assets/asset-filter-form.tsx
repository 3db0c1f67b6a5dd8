// The filters of a search for assets, as a form.
import { Field, TextArea } from '../parts/form.tsx';
import { SearchForm } from '../parts/search-form.tsx';
import { shownTime } from '../search-fields.ts';
import { type AssetFields, assetFields } from './asset-query.ts';

export interface AssetFilterFormProps {
  readonly fields: AssetFields;
  /** With fields that make sense. */
  readonly onSearch: (fields: AssetFields) => void;
  readonly clearHref: string;
}

export function AssetFilterForm({ fields, onSearch, clearHref }: AssetFilterFormProps) {
  const { keyringId, accountId, apikeyId } = fields;
  const hasMore = [keyringId, accountId, apikeyId].some((value) => value !== '');
  return (
    <SearchForm search={assetFields} onSearch={onSearch} clearHref={clearHref}>
      <TextArea
        name="data"
        label="Data"
        value={fields.data}
        rows={2}
        isCode
        hint='A JSON object that the asset’s data have to contain, such as {"case": "A-17"}.'
      />
      <div data-columns>
        <Field name="parents" label="Parents" value={fields.parents} hint="Ids; the asset has to have all of them." />
        <Field name="start" label="Made from, in UTC" type="datetime-local" value={shownTime(fields.start)} />
        <Field name="end" label="Made until, in UTC" type="datetime-local" value={shownTime(fields.end)} />
      </div>
      <details open={hasMore || undefined}>
        <summary>More filters</summary>
        <div data-columns>
          <Field name="keyringId" label="Keyring, by its id" value={keyringId} />
          <Field name="accountId" label="Account, by its id" value={accountId} />
          <Field name="apikeyId" label="API key, by its id" value={apikeyId} />
        </div>
      </details>
    </SearchForm>
  );
}
