// The Prometheus text format from plain numbers. A registry is made for each answer and then dropped, so that one
// tenant's numbers cannot get into another's answer.
import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import type { Buckets } from './counts.ts';

type Labels = Readonly<Record<string, string>>;

interface Sample {
  readonly labels?: Labels;
  readonly value: number;
}

export class Exposition {
  readonly #registry = new Registry();

  counter(name: string, help: string, labelNames: readonly string[], samples: readonly Sample[]): void {
    const counter = new Counter({ name, help, labelNames: [...labelNames], registers: [this.#registry] });
    for (const { labels = {}, value } of samples) counter.inc(labels, value);
  }

  gauge(name: string, help: string, labelNames: readonly string[], samples: readonly Sample[]): void {
    const gauge = new Gauge({ name, help, labelNames: [...labelNames], registers: [this.#registry] });
    for (const { labels = {}, value } of samples) gauge.set(labels, value);
  }

  histogram(
    name: string,
    help: string,
    series: readonly { readonly labels?: Labels; readonly buckets: Buckets }[],
  ): void {
    const values = series.flatMap(({ labels = {}, buckets }) => histogramLines(name, labels, buckets));
    this.#registry.registerMetric(new CountedHistogram(name, help, values));
  }

  text(): Promise<string> {
    return this.#registry.metrics();
  }
}

interface Line {
  readonly metricName: string;
  readonly labels: Record<string, string>;
  readonly value: number;
}

function histogramLines(name: string, labels: Labels, { bounds, counts, sum }: Buckets): Line[] {
  let below = 0;
  const lines = [...counts].map((count, at) => {
    below += count;
    const le = String(bounds[at] ?? '+Inf');
    return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: below };
  });
  return [
    ...lines,
    { metricName: `${name}_sum`, labels: { ...labels }, value: sum },
    { metricName: `${name}_count`, labels: { ...labels }, value: below },
  ];
}

/** A histogram of values counted elsewhere. */
class CountedHistogram extends Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #lines: readonly Line[];

  constructor(name: string, help: string, lines: readonly Line[]) {
    super({ name, help, registers: [] });
    this.#name = name;
    this.#help = help;
    this.#lines = lines;
  }

  /** Called by the registry to write a histogram as text. */
  async getForPromString(): Promise<object> {
    return { name: this.#name, help: this.#help, type: 'histogram', values: this.#lines };
  }
}
