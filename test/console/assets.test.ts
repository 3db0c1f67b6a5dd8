// The visible part of the graph of assets: how it grows, its limits, and its layout.
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import {
  type Asset,
  type AssetGraph,
  edgesOf,
  graphOf,
  isFull,
  labelOf,
  layoutOf,
  mostNodes,
  nodeHeight,
  nodeWidth,
  unseenParents,
  withChildren,
  withParents,
} from '../../src/console/assets/graph.ts';

const asset = (id: string, parents: string[] = [], data = {}): Asset => ({ id, createdAt: 'then', data, parents });
const ids = (graph: AssetGraph): string[] => [...graph.nodes.keys()];

test('a graph grows by parents and children', () => {
  let graph = graphOf(asset('c', ['a', 'b', 'gone', 'a']));
  assert.deepEqual(unseenParents(graph, 'c'), ['a', 'b', 'gone']);
  assert.deepEqual(edgesOf(graph), []);
  graph = withParents(graph, [asset('a'), asset('b', ['a'])], ['gone']);
  assert.deepEqual([ids(graph), unseenParents(graph, 'c')], [['c', 'a', 'b', 'gone'], []]);
  assert.equal(graph.nodes.get('gone')?.asset, undefined);
  graph = withChildren(graph, 'c', [asset('d', ['c']), asset('e', ['c', 'b'])], false);
  assert.deepEqual([graph.nodes.get('c')?.children, graph.nodes.get('d')?.children], ['all', 'unknown']);
  const edges = edgesOf(graph).map(({ parent, child }) => parent + child);
  assert.deepEqual(edges.sort(), ['ab', 'ac', 'bc', 'be', 'cd', 'ce', 'gonec']);
  assert.equal(withChildren(graph, 'd', [], true).nodes.get('d')?.children, 'some');
  assert.equal(withChildren(graph, 'unknown', [asset('z')], false), graph);
});

test('it grows up to its bound and says so', () => {
  const children = Array.from({ length: 100 }, (_, index) => asset(`child${index}`, ['root']));
  const graph = withChildren(graphOf(asset('root')), 'root', children, false);
  assert.deepEqual([graph.nodes.size, isFull(graph), graph.nodes.get('root')?.children], [mostNodes, true, 'some']);
  assert.equal(layoutOf(graph).nodes.length, mostNodes);
});

test('labels come from the data where it has a name, else from the id', () => {
  assert.equal(labelOf({ id: 'asset_01hzzzzzzzzzzz12345678', asset: undefined }), '…12345678');
  const label = (data: object) => labelOf({ id: 'asset_12345678', asset: asset('x', [], data) });
  assert.equal(label({ name: ' Invoice 7 ', title: 'no' }), 'Invoice 7');
  assert.equal(label({ name: 7, title: 'T' }), 'T');
  assert.equal(label({ name: 'a'.repeat(30) }), `${'a'.repeat(19)}…`);
  assert.equal(label(Object.fromEntries([['__proto__', { name: 'x' }]])), '…12345678');
});

test('nodes do not overlap, parents are above, all is inside', () => {
  // Any acyclic graph: parents are earlier assets.
  const parents = fc.array(fc.array(fc.nat(), { maxLength: 4 }), { minLength: 1, maxLength: 25 });
  fc.assert(
    fc.property(parents, (lists) => {
      const assets = lists.map((list, index) =>
        asset(`n${index}`, index === 0 ? [] : list.map((parent) => `n${parent % index}`)),
      );
      const [first = assert.fail(), ...rest] = assets;
      const { nodes, edges, width, height } = layoutOf(withParents(graphOf(first), rest, []));
      const at = new Map(nodes.map((placed) => [placed.node.id, placed]));
      for (const { x, y } of nodes) assert.ok(x >= 0 && y >= 0 && x + nodeWidth <= width && y + nodeHeight <= height);
      for (const { parent, child, path } of edges) {
        assert.ok((at.get(parent)?.y ?? 0) + nodeHeight <= (at.get(child)?.y ?? 0), `${parent} above ${child}`);
        assert.match(path, /^M-?[\d.]+ -?[\d.]+(?:[LQ]-?[\d.]+ -?[\d.]+(?: -?[\d.]+ -?[\d.]+)?)+$/);
      }
      nodes.forEach((a, index) => {
        for (const b of nodes.slice(index + 1)) {
          assert.ok(Math.abs(a.x - b.x) >= nodeWidth || Math.abs(a.y - b.y) >= nodeHeight);
        }
      });
    }),
    { numRuns: 30 },
  );
});
