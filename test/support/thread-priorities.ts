// Priorities of the threads in the tests' process.
import { readdirSync, readFileSync } from 'node:fs';

/** The nice values of this process's threads, the main thread first. */
export function threadPriorities(): number[] {
  const threads = readdirSync('/proc/self/task').sort((a, b) => Number(a) - Number(b));
  // proc_pid_stat(5): field 19, counted after the name, which is field 2 and may contain spaces.
  const fields = (thread: string) => readFileSync(`/proc/self/task/${thread}/stat`, 'utf8').split(') ')[1]?.split(' ');
  return threads.map((thread) => Number(fields(thread)?.[16]));
}
