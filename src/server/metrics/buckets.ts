// Counts values by size, as a histogram of Prometheus has them. Counting one is a few comparisons and two additions.

/** Upper ends of the buckets, ascending; one more stands for all that is greater. */
export type Bounds = readonly number[];

/** Seconds, from half a millisecond, which an encrypt takes, to ten seconds. */
export const requestSeconds: Bounds = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Seconds of a write to a disk. */
export const diskSeconds: Bounds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5];
export const checkpointSeconds: Bounds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
export const groupSizes: Bounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];

export class Buckets {
  readonly bounds: Bounds;
  /** How many fell into each bucket, those of the smaller ones not counted again. */
  readonly counts: Float64Array;
  sum = 0;

  constructor(bounds: Bounds) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  add(value: number): void {
    const { bounds, counts } = this;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? 0)) at++;
    counts[at] = (counts[at] ?? 0) + 1;
    this.sum += value;
  }
}
