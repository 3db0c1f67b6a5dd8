// How long something keeps others from the event loop, in CPU time of the process: how busy the machine is does not
// count.

/** Runs `work`; answers the most CPU time, in milliseconds, that went by between two turns of the event loop. */
export async function longestGo(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let working = true;
  let before = process.cpuUsage();
  const turn = (): void => {
    const { user, system } = process.cpuUsage(before);
    longest = Math.max(longest, (user + system) / 1000);
    before = process.cpuUsage();
    if (working) setImmediate(turn);
  };
  await new Promise((resolve) => setImmediate(resolve));
  before = process.cpuUsage();
  setImmediate(turn);
  await work();
  working = false;
  turn();
  return longest;
}
