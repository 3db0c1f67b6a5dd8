// Where the nodes and edges of a graph of assets are drawn: parents above their children.
import { Graph, layout } from '@dagrejs/dagre';
import { type AssetGraph, type AssetNode, edgesOf } from './asset-graph.ts';

export interface PlacedNode {
  readonly node: AssetNode;
  /** Of its upper left corner. */
  readonly x: number;
  readonly y: number;
}

export interface PlacedEdge {
  readonly parent: string;
  readonly child: string;
  /** What the `d` of an SVG path takes. */
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

/** A curve from the first point to the last that bends at those between. */
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
