// GraphPanel draws the graph around an asset as SVG, parents above children, each node a link to its asset. It starts
// with the asset and its parents, and grows by fetching the parents or children of any node.
import { useEffect, useId, useRef } from 'hono/jsx/dom';
import type { Client } from '../../client/client.ts';
import { KmsError } from '../../errors.ts';
import { hrefTo } from '../navigation.ts';
import { Select } from '../parts/fields.tsx';
import { ActionError, announce } from '../parts/messages.tsx';
import { useAction, useState } from '../parts/state.ts';
import { shortId } from '../text.ts';
import {
  type Asset,
  type AssetGraph,
  type AssetNode,
  type GraphLayout,
  graphOf,
  isFull,
  labelOf,
  layoutOf,
  mostNodes,
  nodeHeight,
  nodeWidth,
  type PlacedNode,
  unseenParents,
  withChildren,
  withParents,
} from './graph.ts';

interface GraphViewProps {
  readonly graph: AssetGraph;
  readonly layout: GraphLayout;
  /** The asset that the page is about. */
  readonly current: string;
  readonly navigate: (href: string) => void;
}

/** The graph as SVG; each node is a link to its asset. */
function GraphView({ graph, layout, current, navigate }: GraphViewProps) {
  const id = useId();
  const { nodes, edges, width, height } = layout;
  const frame = useRef<HTMLElement>(null);
  const at = nodes.find(({ node }) => node.id === current);
  useEffect(() => {
    // If the graph does not fit, the page's asset is centred.
    const { current: element } = frame;
    if (!element || !at) return;
    element.scrollLeft = at.x + nodeWidth / 2 - element.clientWidth / 2;
    element.scrollTop = at.y + nodeHeight / 2 - element.clientHeight / 2;
  }, [at?.x, at?.y]);
  return (
    <section ref={frame} data-scroll data-graph tabindex={0} aria-label="Graph of parents and children">
      <svg viewBox={`0 0 ${width} ${height}`} width={width} height={height} aria-labelledby={`${id}-title`}>
        <title id={`${id}-title`}>{titleOf(graph)}</title>
        <defs>
          <marker
            id={`${id}-arrow`}
            viewBox="0 0 10 10"
            refX="9"
            refY="5"
            markerWidth="7"
            markerHeight="7"
            orient="auto-start-reverse"
          >
            <path data-arrow d="M0 0L10 5L0 10z" />
          </marker>
        </defs>
        {edges.map(({ parent, child, path }) => (
          <path key={`${parent} ${child}`} data-edge d={path} marker-end={`url(#${id}-arrow)`} />
        ))}
        {nodes.map((placed) => (
          <Node key={placed.node.id} placed={placed} isCurrent={placed.node.id === current} navigate={navigate} />
        ))}
      </svg>
    </section>
  );
}

interface NodeProps {
  readonly placed: PlacedNode;
  readonly isCurrent: boolean;
  readonly navigate: (href: string) => void;
}

function Node({ placed: { node, x, y }, isCurrent, navigate }: NodeProps) {
  const end = shortId(node.id);
  const name = labelOf(node);
  const below = !node.asset ? 'deleted or not readable' : name === end ? undefined : end;
  const box = (
    <g data-node={isCurrent ? 'current' : node.asset ? 'asset' : 'gone'} transform={`translate(${x} ${y})`}>
      <title>{spoken(node, isCurrent)}</title>
      <rect width={nodeWidth} height={nodeHeight} rx="8" />
      <text x={nodeWidth / 2} y={below === undefined ? 32 : 22} text-anchor="middle" data-name>
        {name}
      </text>
      {below !== undefined && (
        <text x={nodeWidth / 2} y="41" text-anchor="middle">
          {below}
        </text>
      )}
    </g>
  );
  if (!node.asset) return box;
  const href = hrefTo('asset', { id: node.id });
  return (
    <a
      href={href}
      aria-label={spoken(node, isCurrent)}
      aria-current={isCurrent ? 'page' : undefined}
      onClick={(event: MouseEvent) => {
        // The shell does not handle links within SVG.
        if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
        event.preventDefault();
        navigate(href);
      }}
    >
      {box}
    </a>
  );
}

function spoken(node: AssetNode, isCurrent: boolean): string {
  const name = labelOf(node);
  const end = shortId(node.id);
  if (!node.asset) return `${end}, deleted or not readable`;
  const parents = node.asset.parents.length;
  const rest = parents === 0 ? 'no parents' : parents === 1 ? 'one parent' : `${parents} parents`;
  return `${name === end ? name : `${name}, ${end}`}, ${rest}${isCurrent ? ', this asset' : ''}`;
}

function titleOf({ nodes }: AssetGraph): string {
  return nodes.size === 1 ? 'One asset' : `${nodes.size} assets and how they descend from each other`;
}

interface GraphPanelProps {
  readonly api: Client;
  readonly asset: Asset;
  /** Whether children can be searched for. */
  readonly canSearch: boolean;
  readonly navigate: (href: string) => void;
}

/** Number of children fetched at a time. */
const childrenAtATime = 25;

export function GraphPanel({ api, asset, canSearch, navigate }: GraphPanelProps) {
  const [graph, setGraph] = useState(graphOf(asset));
  const [chosen, setChosen] = useState(asset.id);
  const { isBusy, error, start } = useAction(async (what: string, step: () => Promise<AssetGraph>) => {
    const next = await step();
    announce(`${what}: ${next.nodes.size} assets are shown.`);
    setGraph(next);
  });
  const addParents = (id: string) => start('Parents added', () => withParentsOf(api, graph, id));
  const addChildren = (id: string) => start('Children added', () => withChildrenOf(api, graph, id));

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
          label="Continue from"
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
      <ActionError error={error} />
      {full && (
        <p data-note data-tone="warn">
          At most {mostNodes} assets are shown at once. Open one of them to continue from there.
        </p>
      )}
      {!canSearch && <p data-quiet>Children are not shown: that needs the flag asset.search.</p>}
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
