// What the app needs of whoever counts its answers. Nothing may be done per answer but add to numbers.
import type { Served } from './request-log.ts';

export interface Meter {
  /** Asked once for each route; what it answers is told of each request to it, with the milliseconds that it took. */
  route(action: string): (served: Served, milliseconds: number) => void;
}
