// Which rings are near their rotation.
import type { Client } from '../../client/client.ts';
import { hrefTo } from '../address.ts';
import { useAnswer } from '../parts/answer.tsx';
import { countText, spanText } from './amounts.ts';
import { type RingRotation, type Rotations, rotations, shareOf } from './rotation.ts';
import { Tile, TileAnswer, useTurn } from './tile.tsx';

/** As many as one takes in at a glance. */
const mostShown = 6;

export function RotationTile({ api, turn }: { readonly api: Client; readonly turn: number }) {
  const answer = useAnswer((signal) => rotations(api, { signal }));
  useTurn(answer, turn);
  return (
    <Tile title="Rings near their rotation">
      <TileAnswer of={answer} what="the rings" show={(found) => <Found found={found} />} />
    </Tile>
  );
}

function Found({ found: { rings, isCut } }: { readonly found: Rotations }) {
  if (rings.length === 0) {
    return (
      <p>
        There are no rings that you may read. <a href={hrefTo('keyrings')}>All keyrings</a>
      </p>
    );
  }
  const counted = rings.filter(({ served }) => served !== undefined);
  const rest = rings.length - counted.length;
  return (
    <>
      {counted.length > 0 && (
        <ul data-plain>
          {counted.slice(0, mostShown).map((ring) => (
            <Ring key={ring.ring} ring={ring} />
          ))}
        </ul>
      )}
      {counted.length > mostShown && <p data-quiet>{counted.length - mostShown} more are further from it.</p>}
      {rest > 0 && (
        <p data-quiet>
          {rest === 1 ? '1 ring has' : `${rest} rings have`} a limit too high to be counted towards here, or may not be
          counted by you.
        </p>
      )}
      {isCut && <p data-quiet>Only the first rings of the list were looked at.</p>}
    </>
  );
}

function Ring({ ring: { ring, served = 0, most, since } }: { readonly ring: RingRotation }) {
  const share = shareOf({ ring, served, most, since });
  return (
    <li>
      <div data-bar>
        <a href={hrefTo('keyring', { name: ring })}>
          <bdi>{ring}</bdi>
        </a>
        <span>
          {countText(served)} of {countText(most)}
        </span>
      </div>
      <meter
        min={0}
        max={1}
        low={0.75}
        high={0.9}
        optimum={0}
        value={share}
        aria-label={`${ring}: encrypts of the active key against its limit`}
      >
        {Math.round(share * 100)} %
      </meter>
      {since !== undefined && (
        <small>
          Its key is {spanText(Math.max(0, (Date.now() - since) / 1000))} old; the next one comes by itself.
        </small>
      )}
    </li>
  );
}
