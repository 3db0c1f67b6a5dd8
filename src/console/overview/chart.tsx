// Chart draws stacked bars over time as SVG, distinguished by pattern as well as by colour, and offers the same numbers
// as a table.
import { useEffect, useId, useRef } from 'hono/jsx/dom';
import type { TimeAxis } from '../../model/time-ranges.ts';
import { useState } from '../parts/state.ts';
import { countText, localForm } from '../text.ts';
import { type ChartSeries, chartShape } from './chart-shape.ts';

interface ChartProps {
  readonly title: string;
  readonly axis: TimeAxis;
  readonly series: readonly ChartSeries[];
}

const margins = { top: 10, right: 8, bottom: 24, left: 44 };
/** Height of the plot in pixels. */
const plotHeight = 200;
const narrowest = 200;

export function Chart({ title, axis, series }: ChartProps) {
  const id = useId();
  const figure = useRef<HTMLElement>(null);
  const width = useWidth(figure);
  const plot = { width: Math.max(narrowest, width - margins.left - margins.right), height: plotHeight };
  const height = plotHeight + margins.top + margins.bottom;
  const { bars, marks, step } = chartShape(series, plot);
  const times = axis.starts.map((start) => timeText(start, axis));
  const [pointed, setPointed] = useState<number | undefined>(undefined);
  const point = (event: PointerEvent): void => {
    // Cast: the listener is on an element.
    const { left } = (event.currentTarget as Element).getBoundingClientRect();
    const bucket = Math.floor((event.clientX - left - margins.left) / step);
    setPointed(bucket >= 0 && bucket < times.length ? bucket : undefined);
  };
  const totals = series.map(({ counts }) => counts.reduce((sum, count) => sum + count, 0));
  const summary = series.map(({ name }, index) => `${countText(totals[index] ?? 0)} ${name.toLowerCase()}`).join(', ');
  return (
    <figure ref={figure} data-chart>
      <figcaption>
        <ul data-legend>
          {series.map(({ name }, index) => (
            <li key={name}>
              <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
                <Pattern id={`${id}-legend-${index}`} index={index} />
                <rect data-series={index} width="16" height="16" fill={`url(#${id}-legend-${index})`} />
              </svg>
              {name}: <strong>{countText(totals[index] ?? 0)}</strong>
            </li>
          ))}
        </ul>
      </figcaption>
      <svg
        width={plot.width + margins.left + margins.right}
        height={height}
        role="img"
        aria-label={title}
        aria-describedby={`${id}-desc`}
        onPointerMove={point}
        onPointerDown={point}
        onPointerLeave={() => setPointed(undefined)}
      >
        <desc id={`${id}-desc`}>{summary}. The table below has the numbers for each time.</desc>
        {series.map((_, index) => (
          <Pattern key={index} id={`${id}-${index}`} index={index} />
        ))}
        <g transform={`translate(${margins.left} ${margins.top})`}>
          {marks.map(({ value, y }) => (
            <g key={value} data-mark>
              <line x1="0" x2={plot.width} y1={y} y2={y} />
              <text x="-8" y={y + 4} text-anchor="end">
                {shortCount(value)}
              </text>
            </g>
          ))}
          {pointed !== undefined && <rect data-pointed x={step * pointed} y="0" width={step} height={plot.height} />}
          {bars.map((bar) => (
            <rect
              key={`${bar.bucket}-${bar.series}`}
              data-series={bar.series}
              x={bar.x}
              y={bar.y}
              width={bar.width}
              height={bar.height}
              fill={`url(#${id}-${bar.series})`}
            />
          ))}
          {labelled(times, plot.width).map((index) => (
            <text key={index} data-time x={step * (index + 0.5)} y={plot.height + 18} text-anchor="middle">
              {times[index]}
            </text>
          ))}
          {pointed !== undefined && (
            <Tip
              lines={[times[pointed] ?? '', ...series.map((each) => barText(each, pointed))]}
              x={step * (pointed + 0.5)}
              beside={step / 2 + 6}
              width={plot.width}
            />
          )}
        </g>
      </svg>
      <NumbersTable title={title} times={times} series={series} />
    </figure>
  );
}

function barText(series: ChartSeries | undefined, bucket: number): string {
  return `${countText(series?.counts[bucket] ?? 0)} ${series?.name.toLowerCase()}`;
}

interface TipProps {
  readonly lines: readonly string[];
  /** Centre of the bar, the tip's distance from it, and the width of the plot that it must stay in. */
  readonly x: number;
  readonly beside: number;
  readonly width: number;
}

/** A tooltip with the numbers of the bucket under the pointer. */
function Tip({ lines, x, beside, width }: TipProps) {
  const own = { width: Math.max(...lines.map((line) => line.length)) * 7.2 + 20, height: lines.length * 18 + 12 };
  const left = x + beside + own.width <= width ? x + beside : Math.max(0, x - beside - own.width);
  return (
    <g data-tip transform={`translate(${left} 6)`}>
      <rect width={own.width} height={own.height} rx="6" />
      {lines.map((line, index) => (
        <text key={index} x="10" y={21 + index * 18}>
          {line}
        </text>
      ))}
    </g>
  );
}

/** The pattern of a series: filled, striped or dotted. The style sheet sets the colour by `data-series`. */
function Pattern({ id, index }: { readonly id: string; readonly index: number }) {
  return (
    <defs>
      <pattern id={id} data-series={index} width="6" height="6" patternUnits="userSpaceOnUse">
        <rect width="6" height="6" data-part={index === 0 ? 'full' : 'pale'} />
        {index === 1 && <path data-part="line" d="M-1 7L7-1M-1 1L1-1M5 7L7 5" />}
        {index === 2 && <path data-part="line" d="M-1-1L7 7M-1 7L7-1" />}
      </pattern>
    </defs>
  );
}

function NumbersTable({ title, times, series }: Omit<ChartProps, 'axis'> & { readonly times: readonly string[] }) {
  return (
    <details>
      <summary>The numbers as a table</summary>
      <section data-scroll tabindex={0} aria-label={`${title}, as a table`}>
        <table>
          <caption>{title}</caption>
          <thead>
            <tr>
              <th scope="col">From</th>
              {series.map(({ name }) => (
                <th key={name} scope="col" data-number>
                  {name}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {times.map((time, index) => (
              <tr key={index}>
                <th scope="row">{time}</th>
                {series.map(({ name, counts }) => (
                  <td key={name} data-number>
                    {countText(counts[index] ?? 0)}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </section>
    </details>
  );
}

/** Indices of the buckets with a time label: evenly spaced, as many as fit. */
function labelled(times: readonly string[], width: number): number[] {
  const longest = Math.max(0, ...times.map((time) => time.length));
  const room = Math.max(1, Math.floor(width / (longest * 8 + 16)));
  const every = Math.max(1, Math.ceil(times.length / room));
  return Array.from({ length: Math.ceil(times.length / every) }, (_, index) => index * every);
}

/** Width available to the element in pixels; follows changes. */
function useWidth(element: { readonly current: HTMLElement | null }): number {
  const [width, setWidth] = useState(600);
  useEffect(() => {
    const { current } = element;
    if (!current) return;
    const observer = new ResizeObserver(() => setWidth(Math.floor(current.clientWidth)));
    observer.observe(current);
    return () => observer.disconnect();
  }, []);
  return width;
}

function timeText(time: number, { starts, bucket }: TimeAxis): string {
  const text = localForm(new Date(time));
  const clock = text.slice(11, 16);
  return starts.length * bucket > 86_400_000 ? `${text.slice(5, 10)} ${clock}` : clock;
}

function shortCount(count: number): string {
  return count.toLocaleString('en', { notation: 'compact', maximumFractionDigits: 1 });
}
