// What an operator looks at first: how the service is used, how it is doing, and what will soon need attention.
import { useEffect } from 'hono/jsx/dom';
import { ChartTile } from '../overview/chart-tile.tsx';
import { readiness } from '../overview/health.ts';
import { LogTile } from '../overview/log-tile.tsx';
import { RotationTile } from '../overview/rotation-tile.tsx';
import { BackupTile, SealTile } from '../overview/state-tiles.tsx';
import { useTurn } from '../overview/tile.tsx';
import { useAnswer } from '../parts/answer.tsx';
import { PageHeader } from '../parts/page-header.tsx';
import { useState } from '../parts/state.ts';
import { Time } from '../parts/time.tsx';
import type { RoomProps } from '../room.ts';

/** Each look is in the activity log, so not more often. */
const lookEvery = 60_000;
/** Counting what rings have served takes many requests: they are looked at when somebody asks to, and seldom by themselves. */
const ringsEvery = 15;

export function OverviewRoom({ api, text, stream }: RoomProps) {
  const [turn, setTurn] = useState(0);
  const [at, setAt] = useState(Date.now());
  const state = useAnswer(readiness);
  useTurn(state, turn);

  const [ringTurn, setRingTurn] = useState(0);

  const look = (withRings: boolean): void => {
    setTurn((before) => before + 1);
    setAt(Date.now());
    if (withRings) setRingTurn((before) => before + 1);
  };
  useEffect(() => {
    let looks = 0;
    const timer = setInterval(() => {
      if (!document.hidden) look(++looks % ringsEvery === 0);
    }, lookEvery);
    return () => clearInterval(timer);
  }, []);

  return (
    <>
      <PageHeader
        title="Overview"
        lead={
          <>
            As of <Time at={at} />, anew every minute while you look.
          </>
        }
        actions={
          <button type="button" data-kind="quiet" onClick={() => look(true)}>
            Look again
          </button>
        }
      />
      <div data-tiles>
        <ChartTile api={api} turn={turn} />
        <SealTile answer={state} />
        <BackupTile answer={state} stream={stream} />
        <RotationTile api={api} turn={ringTurn} />
        <LogTile text={text} turn={turn} />
      </div>
    </>
  );
}
