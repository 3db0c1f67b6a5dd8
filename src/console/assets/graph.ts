// The part of the asset graph around one asset: it grows by following parents and children, up to a maximum. Graphs are
// immutable; each step returns a new one. GraphLayout gives the positions of nodes and edges.
import { Graph, layout } from '@dagrejs/dagre';
import type { AnswerTo } from '../../client/client.ts';
import { shortId } from '../text.ts';

export type Asset = AnswerTo<'getAsset'>;

export interface AssetNode {
  readonly id: string;
  /** Undefined if a child names it as parent but it cannot be read; most likely it was deleted. */
  readonly asset: Asset | undefined;
  /** Whether its children have been searched for: not yet, in part, or completely. */
  readonly children: 'unknown' | 'some' | 'all';
}

export interface AssetGraph {
  readonly nodes: ReadonlyMap<string, AssetNode>;
}

/** Maximum number of nodes; more are neither legible nor quick to lay out. */
export const mostNodes = 60;

export function graphOf(asset: Asset): AssetGraph {
  return { nodes: new Map([[asset.id, { id: asset.id, asset, children: 'unknown' }]]) };
}

export function isFull({ nodes }: AssetGraph): boolean {
  return nodes.size >= mostNodes;
}

/** Adds parents of existing nodes, as far as there is room; `unreadable` are ids of parents that could not be read. */
export function withParents(graph: AssetGraph, found: readonly Asset[], unreadable: readonly string[]): AssetGraph {
  const added = [
    ...found.map((asset) => ({ id: asset.id, asset })),
    ...unreadable.map((id) => ({ id, asset: undefined })),
  ];
  return grown(graph, added);
}

export function withChildren(graph: AssetGraph, id: string, found: readonly Asset[], hasMore: boolean): AssetGraph {
  const { nodes } = grown(
    graph,
    found.map((asset) => ({ id: asset.id, asset })),
  );
  const node = nodes.get(id);
  if (!node) return graph;
  const isWhole = !hasMore && found.every((asset) => nodes.has(asset.id));
  return { nodes: new Map(nodes).set(id, { ...node, children: isWhole ? 'all' : 'some' }) };
}

/** Ids of a node's parents that are not in the graph. */
export function unseenParents({ nodes }: AssetGraph, id: string): string[] {
  const parents = nodes.get(id)?.asset?.parents ?? [];
  return [...new Set(parents)].filter((parent) => !nodes.has(parent));
}

interface AssetEdge {
  readonly parent: string;
  readonly child: string;
}

export function edgesOf({ nodes }: AssetGraph): AssetEdge[] {
  return [...nodes.values()].flatMap(({ id, asset }) =>
    [...new Set(asset?.parents ?? [])].filter((parent) => nodes.has(parent)).map((parent) => ({ parent, child: id })),
  );
}

/** A name from the asset's data, or else the end of its id, which tells assets apart. */
export function labelOf({ id, asset }: Pick<AssetNode, 'id' | 'asset'>): string {
  const names = ['name', 'title', 'displayName', 'filename', 'label'];
  for (const name of names) {
    const value = asset && Object.hasOwn(asset.data, name) ? asset.data[name] : undefined;
    if (typeof value === 'string' && value.trim() !== '') return shortened(value.trim());
  }
  return shortId(id);
}

const longestLabel = 20;

function shortened(text: string): string {
  const characters = [...text];
  return characters.length <= longestLabel ? text : `${characters.slice(0, longestLabel - 1).join('')}…`;
}

function grown({ nodes }: AssetGraph, added: readonly Pick<AssetNode, 'id' | 'asset'>[]): AssetGraph {
  const all = new Map(nodes);
  for (const { id, asset } of added) {
    if (!all.has(id) && all.size < mostNodes) all.set(id, { id, asset, children: 'unknown' });
  }
  return { nodes: all };
}

export interface PlacedNode {
  readonly node: AssetNode;
  /** Position of its upper left corner. */
  readonly x: number;
  readonly y: number;
}

interface PlacedEdge {
  readonly parent: string;
  readonly child: string;
  /** The `d` attribute of an SVG path. */
  readonly path: string;
}

export interface GraphLayout {
  readonly nodes: readonly PlacedNode[];
  readonly edges: readonly PlacedEdge[];
  readonly width: number;
  readonly height: number;
}

export const nodeWidth = 190;
export const nodeHeight = 54;
const margin = 12;

export function layoutOf(graph: AssetGraph): GraphLayout {
  const drawn = new Graph();
  drawn.setGraph({ rankdir: 'TB', nodesep: 24, ranksep: 48, marginx: margin, marginy: margin });
  drawn.setDefaultEdgeLabel(() => ({}));
  for (const id of graph.nodes.keys()) drawn.setNode(id, { width: nodeWidth, height: nodeHeight });
  const edges = edgesOf(graph);
  for (const { parent, child } of edges) drawn.setEdge(parent, child);
  layout(drawn);
  const { width = 0, height = 0 } = drawn.graph() as { width?: number; height?: number }; // the layout's own result
  return {
    nodes: [...graph.nodes.values()].map((node) => {
      const { x = 0, y = 0 } = drawn.node(node.id) as { x?: number; y?: number }; // as above
      return { node, x: Math.round(x - nodeWidth / 2), y: Math.round(y - nodeHeight / 2) };
    }),
    edges: edges.map(({ parent, child }) => {
      const { points = [] } = drawn.edge(parent, child) as { points?: readonly Point[] }; // as above
      return { parent, child, path: pathOf(points) };
    }),
    width: Math.ceil(width),
    height: Math.ceil(height),
  };
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** A curve from the first point to the last, with bends at those between. */
function pathOf(points: readonly Point[]): string {
  const [first, ...rest] = points.map(({ x, y }) => ({ x: Math.round(x), y: Math.round(y) }));
  const last = rest.pop();
  if (!first || !last) return '';
  let path = `M${first.x} ${first.y}`;
  rest.forEach((bend, index) => {
    const next = rest[index + 1];
    const to = next ? { x: (bend.x + next.x) / 2, y: (bend.y + next.y) / 2 } : last;
    path += `Q${bend.x} ${bend.y} ${to.x} ${to.y}`;
  });
  return rest.length === 0 ? `${path}L${last.x} ${last.y}` : path;
}
