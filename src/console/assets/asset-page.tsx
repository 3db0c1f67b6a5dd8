// AssetPage shows one asset: its data, and a graph of its parents and children. It also deletes it.
import { hrefTo } from '../navigation.ts';
import type { PageProps } from '../page.ts';
import { Button } from '../parts/button.tsx';
import { ConfirmByName } from '../parts/dialog.tsx';
import { Loaded, toast } from '../parts/messages.tsx';
import { PageHeader } from '../parts/page.tsx';
import { useAnswer, useState } from '../parts/state.ts';
import { Copyable, Facts, Json, Time } from '../parts/values.tsx';
import { type Asset, labelOf } from './graph.ts';
import { GraphPanel } from './graph-view.tsx';

export function AssetPage({ api, session, navigate, params }: PageProps) {
  const { id = '' } = params;
  const answer = useAnswer((signal) => api.getAsset({ id }, { signal }), [id]);
  const [isDeleting, setDeleting] = useState(false);
  const asset = answer.is === 'ready' ? answer.value : undefined;
  return (
    <>
      <PageHeader
        title={asset ? labelOf({ id, asset }) : 'Asset'}
        windowTitle={`Asset ${asset ? labelOf({ id, asset }) : id}`}
        back={{ href: hrefTo('assets'), title: 'Assets' }}
        actions={
          asset && (
            <Button kind="danger" needs="asset.delete" onClick={() => setDeleting(true)}>
              Delete…
            </Button>
          )
        }
      />
      <Loaded
        of={answer}
        show={(found) => (
          <>
            <About asset={found} />
            <section data-panel>
              <h2>Parents and children</h2>
              <GraphPanel api={api} asset={found} canSearch={session.may.covers('asset.search')} navigate={navigate} />
            </section>
          </>
        )}
      />
      {isDeleting && (
        <ConfirmByName
          title="Delete this asset?"
          name={id}
          action="Delete the asset"
          busy="Deleting it…"
          onClose={() => setDeleting(false)}
          onConfirm={async () => {
            await api.deleteAsset({ id });
            toast('The asset has been deleted.');
            navigate(hrefTo('assets'), 'replace');
          }}
        >
          <p>
            It cannot be restored. After that, only those who accept an asset that does not verify can decrypt the files
            that carry it.
          </p>
        </ConfirmByName>
      )}
    </>
  );
}

function About({ asset }: { readonly asset: Asset }) {
  const { id, createdAt, data, parents } = asset;
  return (
    <>
      <section data-panel>
        <Facts
          facts={[
            ['Id', <Copyable key="id" text={id} what="the id of the asset" />],
            ['Created', <Time key="made" at={createdAt} />],
            [
              'Activity',
              <a key="activity" href={hrefTo('activityAbout', { kind: 'asset', id })}>
                Everything about it
              </a>,
            ],
            [
              'Parents',
              parents.length === 0 ? (
                'none'
              ) : (
                <ul key="parents" data-plain data-dense>
                  {parents.map((parent) => (
                    <li key={parent}>
                      <a href={hrefTo('asset', { id: parent })}>
                        <code>{parent}</code>
                      </a>
                    </li>
                  ))}
                </ul>
              ),
            ],
          ]}
        />
      </section>
      <section data-panel>
        <h2>Data</h2>
        <p data-quiet>This is the current version. Decrypting a file shows the version that it was encrypted with.</p>
        <Json value={data} />
      </section>
    </>
  );
}
