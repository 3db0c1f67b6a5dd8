// Numbers of the process, `process_*` and `nodejs_*`, under the usual names of Prometheus clients. They are read at a
// scrape, since a timer for the event loop's lag, or an observer of garbage collections, would cost something all the
// time.
import { readdir, readFile } from 'node:fs/promises';
import { performance } from 'node:perf_hooks';
import { setImmediate } from 'node:timers/promises';
import { getHeapStatistics } from 'node:v8';
import type { Exposition } from './exposition.ts';

export async function processNumbers(out: Exposition): Promise<void> {
  const { user, system } = process.cpuUsage();
  counter(out, 'process_cpu_user_seconds_total', 'CPU time of the process in user mode, in seconds.', user / 1e6);
  counter(out, 'process_cpu_system_seconds_total', 'CPU time of the process in the kernel, in seconds.', system / 1e6);
  counter(out, 'process_cpu_seconds_total', 'CPU time of the process, in seconds.', (user + system) / 1e6);
  gauge(out, 'process_start_time_seconds', 'When the process started, in Unix time.', performance.timeOrigin / 1000);
  resident(out);
  const { total_heap_size: heap, used_heap_size: used, external_memory: external } = getHeapStatistics();
  gauge(out, 'nodejs_heap_size_total_bytes', 'Size of the JavaScript heap, in bytes.', heap);
  gauge(out, 'nodejs_heap_size_used_bytes', 'Heap in use, in bytes.', used);
  gauge(
    out,
    'nodejs_external_memory_bytes',
    'Memory outside the heap that objects in it stand for, in bytes.',
    external,
  );
  await descriptors(out);
  const { active, idle } = performance.eventLoopUtilization();
  counter(
    out,
    'nodejs_eventloop_active_seconds_total',
    'Time that the serving thread worked, in seconds.',
    active / 1000,
  );
  counter(
    out,
    'nodejs_eventloop_idle_seconds_total',
    'Time that it waited for something to do, in seconds.',
    idle / 1000,
  );
  const started = performance.now();
  await setImmediate();
  const lag = (performance.now() - started) / 1000;
  gauge(out, 'nodejs_eventloop_lag_seconds', 'How long one turn of the event loop took just now, in seconds.', lag);
  out.gauge('nodejs_version_info', 'The runtime.', ['version'], [{ labels: { version: process.version }, value: 1 }]);
}

/** Omitted if the system has no /proc. */
function resident(out: Exposition): void {
  try {
    gauge(out, 'process_resident_memory_bytes', 'Memory of the process, in bytes.', process.memoryUsage.rss());
  } catch {
    // No /proc: the number is omitted.
  }
}

/** Omitted if the system has no /proc. */
async function descriptors(out: Exposition): Promise<void> {
  try {
    const open = await readdir('/proc/self/fd');
    const [, most] = /^Max open files\s+(\d+)/m.exec(await readFile('/proc/self/limits', 'utf8')) ?? [];
    gauge(out, 'process_open_fds', 'Open file descriptors.', open.length);
    if (most !== undefined) gauge(out, 'process_max_fds', 'How many may be open.', Number(most));
  } catch {
    // No /proc: the numbers are omitted.
  }
}

function counter(out: Exposition, name: string, help: string, value: number): void {
  out.counter(name, help, [], [{ value }]);
}

function gauge(out: Exposition, name: string, help: string, value: number): void {
  out.gauge(name, help, [], [{ value }]);
}
