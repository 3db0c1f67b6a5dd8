// Geometry of a stacked bar chart: numbers in, rectangles and axis marks out. It draws nothing.

export interface ChartSeries {
  readonly name: string;
  /** One count per bucket. */
  readonly counts: readonly number[];
}

interface ChartBar {
  /** Index of the series and of the bucket. */
  readonly series: number;
  readonly bucket: number;
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

interface ChartMark {
  readonly value: number;
  readonly y: number;
}

interface ChartShape {
  readonly bars: readonly ChartBar[];
  /** Horizontal lines, lowest first. */
  readonly marks: readonly ChartMark[];
  /** Width of one bucket. */
  readonly step: number;
}

interface ChartSize {
  readonly width: number;
  readonly height: number;
}

const gap = 0.22;
/** Minimum height of a bar, so that small counts stay visible. */
const least = 2;

export function chartShape(series: readonly ChartSeries[], { width, height }: ChartSize): ChartShape {
  const buckets = Math.max(0, ...series.map(({ counts }) => counts.length));
  const step = buckets === 0 ? width : width / buckets;
  const totals = Array.from({ length: buckets }, (_, index) =>
    series.reduce((sum, { counts }) => sum + (counts[index] ?? 0), 0),
  );
  const marks = axisMarks(Math.max(0, ...totals));
  const top = marks.at(-1) ?? 1;
  const scale = height / top;
  const bars: ChartBar[] = [];
  for (let bucket = 0; bucket < buckets; bucket++) {
    let y = height;
    series.forEach(({ counts }, index) => {
      const value = counts[bucket] ?? 0;
      if (value === 0) return;
      const barHeight = Math.max(least, value * scale);
      y -= barHeight;
      bars.push({
        series: index,
        bucket,
        x: rounded(bucket * step + (step * gap) / 2),
        y: rounded(Math.max(0, y)),
        width: rounded(step * (1 - gap)),
        height: rounded(barHeight),
      });
    });
  }
  return { bars, step, marks: marks.map((value) => ({ value, y: rounded(height - value * scale) })) };
}

/** Axis values: three to six round numbers from 0 to at least `highest`. */
export function axisMarks(highest: number): number[] {
  if (highest <= 0) return [0, 1];
  const rough = highest / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((factor) => factor * power).find((each) => each >= rough) ?? 10 * power);
  return Array.from({ length: Math.ceil(highest / step) + 1 }, (_, index) => index * step);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}
