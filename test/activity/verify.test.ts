// Verifying the hash chain: from its start or any known position, up to a known head, and with every kind of tampering.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { type ChainLink, chainStart, verifyChain } from '../../src/store/activity/chain.ts';
import { checkpoint, collect, emptyOn, fill, testLog } from './appliance-log.ts';

async function links(count: number, from = 1): Promise<ChainLink[]> {
  const { log, files } = testLog();
  fill(log, 1, count);
  const options = { ...emptyOn(files), segmentRecords: 30 };
  await checkpoint(log, options);
  return collect(log.read(from), ({ line, hash }) => ({ line, hash }));
}

const at = (list: readonly ChainLink[], seq: number): ChainLink => {
  const link = list[seq - 1];
  assert.ok(link);
  return link;
};

describe('verifying a chain', () => {
  it('follows it to its head', async () => {
    const chain = await links(100);
    assert.deepEqual(await verifyChain(chain), { count: 100, head: { seq: 100, hash: at(chain, 100).hash } });
    assert.deepEqual(await verifyChain([]), { count: 0, head: chainStart });
  });

  it('can begin at any known place', async () => {
    const chain = await links(100);
    const start = { seq: 40, hash: at(chain, 40).hash };
    assert.deepEqual(await links(100, 41), chain.slice(40));
    assert.equal((await verifyChain(chain.slice(40), { start })).count, 60);
    assert.match((await verifyChain(chain.slice(41), { start })).broken?.problem ?? '', /record 41 was dropped/);
    const wrong = { seq: 40, hash: at(chain, 39).hash };
    assert.match((await verifyChain(chain.slice(40), { start: wrong })).broken?.problem ?? '', /record 41 was changed/);
    assert.ok((await verifyChain(chain, { start: { seq: 0, hash: 'x' } })).broken);
  });

  it('names the first record that any change of a character touches', async () => {
    const chain = await links(40);
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 40 }), fc.nat(), fc.boolean(), async (seq, where, inHash) => {
        const link = at(chain, seq);
        const text = inHash ? link.hash : link.line;
        const place = where % text.length;
        const changed = text.slice(0, place) + (text[place] === '1' ? '2' : '1') + text.slice(place + 1);
        const broken = chain.with(seq - 1, inHash ? { ...link, hash: changed } : { ...link, line: changed });
        const verdict = await verifyChain(broken);
        assert.equal(verdict.count, seq - 1);
        assert.equal(verdict.broken?.seq, seq);
        assert.equal(verdict.broken?.position, seq);
        assert.match(verdict.broken?.problem ?? '', new RegExp(`record ${seq}\\b`));
      }),
    );
  });

  it('finds a record dropped, repeated, moved, or put in with a hash made for it', async () => {
    const chain = await links(20);
    const dropped = await verifyChain(chain.toSpliced(6, 1));
    assert.match(dropped.broken?.problem ?? '', /record 7 was dropped or moved: record 8 stands in its place/);
    const repeated = await verifyChain(chain.toSpliced(7, 0, at(chain, 7)));
    assert.match(repeated.broken?.problem ?? '', /record 7 was moved or repeated/);
    const moved = await verifyChain(chain.with(6, at(chain, 8)).with(7, at(chain, 7)));
    assert.match(moved.broken?.problem ?? '', /record 7 was dropped or moved/);
    const { log } = testLog();
    fill(log, 1, 6);
    fill(log, 8, 8);
    const forged = await collect(log.read(7), ({ line, hash }) => ({ line, hash }));
    const verdict = await verifyChain(chain.with(6, at(forged, 1)));
    assert.match(verdict.broken?.problem ?? '', /record 8 was changed/);
  });

  it('finds an end that was cut off, and a history written anew, by an anchor', async () => {
    const chain = await links(20);
    const anchors = [{ seq: 15, hash: at(chain, 15).hash }];
    assert.equal((await verifyChain(chain, { anchors })).broken, undefined);
    assert.equal((await verifyChain(chain.slice(0, 15), { anchors })).broken, undefined);
    const cut = await verifyChain(chain.slice(0, 14), { anchors });
    assert.match(cut.broken?.problem ?? '', /ends at record 14.*up to 15/);
    const { log } = testLog();
    fill(log, 2, 21);
    const anew = await collect(log.read(1), ({ line, hash }) => ({ line, hash }));
    assert.equal((await verifyChain(anew)).broken, undefined);
    assert.match((await verifyChain(anew, { anchors })).broken?.problem ?? '', /record 15 has another hash/);
    const two = [...anchors, { seq: 15, hash: at(chain, 14).hash }];
    assert.match((await verifyChain(chain, { anchors: two })).broken?.problem ?? '', /record 15 has another hash/);
  });
});
