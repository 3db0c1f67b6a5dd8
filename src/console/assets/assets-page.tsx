// AssetsPage lists assets, searched by filters that are kept in the page's address.
import type { InputOf } from '../../client/client.ts';
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { arrangementOf, type Chip, queryOf } from '../parts/arranging.ts';
import { Field, TextArea } from '../parts/fields.tsx';
import { Finder } from '../parts/finder.tsx';
import { PageHeader } from '../parts/page.tsx';
import { BadFilters, SearchForm } from '../parts/search.tsx';
import { type Fields, searchFields, shownTime } from '../parts/search-fields.ts';
import { useWholeList } from '../parts/state.ts';
import type { Column } from '../parts/table.tsx';
import { Ago } from '../parts/values.tsx';
import { countedText, shortId } from '../text.ts';
import { type Asset, labelOf } from './graph.ts';

export function AssetsPage({ api, keeper, navigate, query }: PageProps) {
  const fields = assetFields.fromQuery(query);
  const result = assetFields.filters(fields);
  // The search in the list stays when the filters change.
  const to = (next: AssetFields): string =>
    hrefTo('assets', {}, { ...queryOf(arrangementOf(query)), ...assetFields.toQuery(next) });
  return (
    <>
      <PageHeader title="Assets" lead="Signed records about what was encrypted. Encrypting creates and changes them." />
      <AssetFilterForm fields={fields} onSearch={(next) => navigate(to(next))} clearHref={to(assetFields.empty)} />
      {'problems' in result ? (
        <BadFilters key="bad" problems={result.problems} />
      ) : (
        <Found key="found" {...{ api, keeper, navigate, query }} filters={result.filters} />
      )}
    </>
  );
}

const columns: readonly Column<Asset>[] = [
  {
    title: 'Asset',
    kind: 'name',
    cell: (asset) => (
      <a href={hrefTo('asset', { id: asset.id })}>
        <bdi>{labelOf({ id: asset.id, asset })}</bdi>
      </a>
    ),
    sort: (asset) => labelOf({ id: asset.id, asset }),
  },
  {
    title: 'Id',
    shownFrom: 'medium',
    cell: ({ id }) => (
      <code data-whole title={id}>
        {shortId(id)}
      </code>
    ),
  },
  { title: 'Created', cell: ({ createdAt }) => <Ago at={createdAt} />, sort: ({ createdAt }) => createdAt },
  { title: 'Data', kind: 'long', cell: ({ data }) => <bdi title={JSON.stringify(data)}>{excerpt(data)}</bdi> },
  {
    title: 'Parents',
    kind: 'number',
    shownFrom: 'medium',
    cell: ({ parents }) => String(parents.length),
    sort: ({ parents }) => parents.length,
  },
];

const chips: readonly Chip<Asset>[] = [
  { id: 'first', label: 'Without parents', group: 'parents', has: ({ parents }) => parents.length === 0 },
  { id: 'derived', label: 'With parents', group: 'parents', has: ({ parents }) => parents.length > 0 },
];

type FoundProps = Pick<PageProps, 'api' | 'keeper' | 'navigate' | 'query'> & { readonly filters: AssetFilters };

function Found({ api, keeper, navigate, query, filters }: FoundProps) {
  const list = useWholeList(
    (page, signal) => api.searchAssets({ ...filters, ...page }, { signal }),
    keeper,
    `assets ${JSON.stringify(filters)}`,
  );
  return (
    <Finder<Asset>
      {...{ keeper, navigate, query, list, columns, chips }}
      page="assets"
      caption="Assets"
      label="Search by name, id or data"
      keyOf={({ id }) => id}
      nameOf={(asset) => labelOf({ id: asset.id, asset })}
      textsOf={(asset) => [labelOf({ id: asset.id, asset }), asset.id, JSON.stringify(asset.data), ...asset.parents]}
      compare={(one, other) => other.createdAt.localeCompare(one.createdAt)}
      countOf={(count) => countedText(count, 'asset')}
      lookUp={(id, signal) => api.getAsset({ id }, { signal })}
      empty={
        <p>
          {Object.keys(filters).length === 0
            ? 'There are no assets yet. Encrypting with an asset creates one.'
            : 'No asset matches these filters.'}
        </p>
      }
    />
  );
}

const longestExcerpt = 80;

function excerpt(data: object): string {
  const text = JSON.stringify(data);
  if (text === '{}') return 'empty';
  return text.length <= longestExcerpt ? text : `${text.slice(0, longestExcerpt).toWellFormed()}…`;
}

interface AssetFilterFormProps {
  readonly fields: AssetFields;
  /** Called with valid fields only. */
  readonly onSearch: (fields: AssetFields) => void;
  readonly clearHref: string;
}

function AssetFilterForm({ fields, onSearch, clearHref }: AssetFilterFormProps) {
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
        hint='A JSON object that the asset’s data must contain, such as {"case": "A-17"}.'
      />
      <div data-columns>
        <Field name="parents" label="Parents" value={fields.parents} hint="Ids; the asset must have all of them." />
        <Field name="start" label="Created from" type="datetime-local" value={shownTime(fields.start)} />
        <Field name="end" label="Created until" type="datetime-local" value={shownTime(fields.end)} />
      </div>
      <details open={hasMore || undefined}>
        <summary>More filters</summary>
        <div data-columns>
          <Field name="keyringId" label="Keyring id" value={keyringId} />
          <Field name="accountId" label="Account id" value={accountId} />
          <Field name="apikeyId" label="API key id" value={apikeyId} />
        </div>
      </details>
    </SearchForm>
  );
}

type AssetFilters = Omit<InputOf<'searchAssets'>, 'cursor' | 'limit'>;
type Name = keyof AssetFilters;
type AssetFields = Fields<Name>;

const assetFields = searchFields<Name, AssetFilters>({
  data: 'object',
  parents: 'list',
  start: 'start',
  end: 'end',
  keyringId: 'text',
  accountId: 'text',
  apikeyId: 'text',
});
