// Assets, searched by all that they can be searched by, in the page's address.
import { hrefTo } from '../address.ts';
import { AssetFilterForm } from '../assets/asset-filter-form.tsx';
import { type Asset, labelOf } from '../assets/asset-graph.ts';
import { type AssetFields, type AssetFilters, assetFields } from '../assets/asset-query.ts';
import { shortId } from '../id-text.ts';
import { BadFilters } from '../parts/bad-filters.tsx';
import { type Column, DataTable, usePages } from '../parts/data-table.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { Time } from '../parts/time.tsx';
import type { RoomProps } from '../room.ts';

export function AssetsRoom({ api, navigate, query }: RoomProps) {
  const fields = assetFields.fromQuery(query);
  const result = assetFields.filters(fields);
  const to = (next: AssetFields): string => hrefTo('assets', {}, assetFields.toQuery(next));
  return (
    <>
      <PageHeader
        title="Assets"
        lead="Records that stand, signed, in front of what was encrypted. An encrypt makes and changes them."
      />
      <AssetFilterForm fields={fields} onSearch={(next) => navigate(to(next))} clearHref={to(assetFields.empty)} />
      {'problems' in result ? (
        <BadFilters key="bad" problems={result.problems} />
      ) : (
        <Found key="found" api={api} filters={result.filters} />
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
  },
  {
    title: 'Id',
    cell: ({ id }) => (
      <code data-whole title={id}>
        {shortId(id)}
      </code>
    ),
  },
  { title: 'Made', cell: ({ createdAt }) => <Time at={createdAt} /> },
  { title: 'Data', cell: ({ data }) => <bdi>{excerpt(data)}</bdi> },
  { title: 'Parents', kind: 'number', cell: ({ parents }) => String(parents.length) },
];

function Found({ api, filters }: { readonly api: RoomProps['api']; readonly filters: AssetFilters }) {
  const pages = usePages(
    (page, signal) => api.searchAssets({ ...filters, ...page }, { signal }),
    [JSON.stringify(filters)],
  );
  return (
    <DataTable
      caption="Assets, the newest first"
      columns={columns}
      pages={pages}
      keyOf={({ id }) => id}
      empty={
        <p>
          {Object.keys(filters).length === 0
            ? 'There are no assets yet. An encrypt with an asset makes one.'
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
