// A graph of assets as SVG: parents above their children, each a link to its asset.
import { useEffect, useId, useRef } from 'hono/jsx/dom';
import { hrefTo } from '../address.ts';
import { shortId } from '../id-text.ts';
import { type AssetGraph, type AssetNode, labelOf } from './asset-graph.ts';
import { type GraphLayout, nodeHeight, nodeWidth, type PlacedNode } from './graph-layout.ts';

export interface GraphViewProps {
  readonly graph: AssetGraph;
  readonly layout: GraphLayout;
  /** The asset that the page is about. */
  readonly current: string;
  readonly navigate: (href: string) => void;
}

export function GraphView({ graph, layout, current, navigate }: GraphViewProps) {
  const id = useId();
  const { nodes, edges, width, height } = layout;
  const frame = useRef<HTMLElement>(null);
  const at = nodes.find(({ node }) => node.id === current);
  useEffect(() => {
    // Where there is no room for all, what the page is about is in the middle.
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
        // Links in SVG are not among those that the shell follows.
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
