// The graph around an asset: begins with it and its parents, and grows by asking for the parents or children of any asset in it.
import { useEffect } from 'hono/jsx/dom';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { announce } from '../announce.ts';
import { shortId } from '../id-text.ts';
import { Select } from '../parts/select.tsx';
import { useState } from '../parts/state.ts';
import { troubleText } from '../trouble.ts';
import {
  type Asset,
  type AssetGraph,
  graphOf,
  isFull,
  labelOf,
  mostNodes,
  unseenParents,
  withChildren,
  withParents,
} from './asset-graph.ts';
import { layoutOf } from './graph-layout.ts';
import { GraphView } from './graph-view.tsx';

export interface GraphPanelProps {
  readonly api: Client;
  readonly asset: Asset;
  /** Whether children can be searched for. */
  readonly canSearch: boolean;
  readonly navigate: (href: string) => void;
}

/** Children that are fetched at a time. */
const childrenAtATime = 25;

export function GraphPanel({ api, asset, canSearch, navigate }: GraphPanelProps) {
  const [graph, setGraph] = useState(graphOf(asset));
  const [chosen, setChosen] = useState(asset.id);
  const [isBusy, setBusy] = useState(false);
  const [trouble, setTrouble] = useState('');

  const grow = async (what: string, step: () => Promise<AssetGraph>): Promise<void> => {
    setBusy(true);
    setTrouble('');
    try {
      const next = await step();
      announce(`${what}: ${next.nodes.size} assets are shown.`);
      setGraph(next);
    } catch (error) {
      setTrouble(troubleText(error));
    }
    setBusy(false);
  };
  const addParents = (id: string) => grow('Parents added', () => withParentsOf(api, graph, id));
  const addChildren = (id: string) => grow('Children added', () => withChildrenOf(api, graph, id));

  useEffect(() => {
    if (asset.parents.length > 0) void addParents(asset.id);
  }, []);

  const node = graph.nodes.get(chosen);
  const missing = unseenParents(graph, chosen).length;
  const full = isFull(graph);
  return (
    <>
      <GraphView graph={graph} layout={layoutOf(graph)} current={asset.id} navigate={navigate} />
      <div data-graph-controls>
        <Select
          name="chosen"
          label="Go on from"
          value={chosen}
          onChange={setChosen}
          options={[...graph.nodes.values()]
            .filter((each) => each.asset)
            .map((each) => [each.id, nameOf(each)] as const)}
        />
        <button
          type="button"
          data-kind="quiet"
          aria-disabled={isBusy || full || missing === 0 ? 'true' : undefined}
          onClick={() => {
            if (!isBusy && !full && missing > 0) void addParents(chosen);
          }}
        >
          {missing === 0 ? 'All its parents are shown' : `Show its parents (${missing})`}
        </button>
        {canSearch && (
          <button
            type="button"
            data-kind="quiet"
            aria-disabled={isBusy || full || node?.children !== 'unknown' ? 'true' : undefined}
            onClick={() => {
              if (!isBusy && !full && node?.children === 'unknown') void addChildren(chosen);
            }}
          >
            {childrenText(node?.children)}
          </button>
        )}
      </div>
      {trouble !== '' && (
        <p role="alert" data-note data-tone="bad">
          {trouble}
        </p>
      )}
      {full && (
        <p data-note data-tone="warn">
          {mostNodes} assets are as many as are shown at once. Open one of them to go on from there.
        </p>
      )}
      {!canSearch && <p data-quiet>Children are not shown: you would need the flag asset.search.</p>}
    </>
  );
}

async function withParentsOf(api: Client, graph: AssetGraph, id: string): Promise<AssetGraph> {
  const room = mostNodes - graph.nodes.size;
  const wanted = unseenParents(graph, id).slice(0, room);
  const found = await Promise.all(
    wanted.map((parent) =>
      api.getAsset({ id: parent }).catch((error: unknown) => {
        if (error instanceof KmsError && error.code === 'not-found') return undefined;
        throw error;
      }),
    ),
  );
  const readable = found.filter((each) => each !== undefined);
  return withParents(
    graph,
    readable,
    wanted.filter((_, index) => found[index] === undefined),
  );
}

async function withChildrenOf(api: Client, graph: AssetGraph, id: string): Promise<AssetGraph> {
  const { data, pagination } = await api.searchAssets({ parents: [id], limit: childrenAtATime });
  return withChildren(graph, id, data, pagination.hasMore);
}

function nameOf(node: { readonly id: string; readonly asset: Asset | undefined }): string {
  const name = labelOf(node);
  return name === shortId(node.id) ? name : `${name} (${shortId(node.id)})`;
}

function childrenText(children: 'unknown' | 'some' | 'all' | undefined): string {
  if (children === 'some') return 'Some of its children are shown';
  return children === 'all' ? 'All its children are shown' : 'Show its children';
}
