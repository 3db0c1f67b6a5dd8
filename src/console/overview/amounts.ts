// Sizes, spans of time and counts as people read them.

export function bytesText(bytes: number): string {
  const units = ['bytes', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = bytes;
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const text = unit === 0 || value >= 100 ? String(Math.round(value)) : value.toFixed(1);
  return `${text} ${units[unit] === 'bytes' && value === 1 ? 'byte' : units[unit]}`;
}

const steps: readonly (readonly [seconds: number, name: string])[] = [
  [86_400, 'day'],
  [3_600, 'hour'],
  [60, 'minute'],
  [1, 'second'],
];

/** In the largest unit of which there is one at least, rounded down. */
export function spanText(seconds: number): string {
  const [length, name] = steps.find(([each]) => seconds >= each) ?? [1, 'second'];
  const count = Math.max(0, Math.floor(seconds / length));
  return count === 1 ? `1 ${name}` : `${count} ${name}s`;
}

export function countText(count: number): string {
  return count.toLocaleString('en');
}
