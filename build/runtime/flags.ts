// Flags of the executable's runtime. README.md has what each brings.

export const flags = [
  '--no-warnings',
  // No signal starts a debugger.
  '--disable-sigusr1',
  // The default lets the young generation, and the buffers that wait for its collection, grow by another 25 MB.
  '--max-semi-space-size=16',
  // V8 pretenures allocation sites whose objects once survived. Here that would keep all a request's objects alive
  // until old memory is collected.
  '--no-allocation-site-pretenuring',
  // Each helper thread of the compiler and the collector keeps memory; on few cores more of them gain nothing.
  '--v8-pool-size=1',
  // SQLite's functions are optimised once they have run for a while, not at every start: that takes 100 ms of a
  // processor, and 10 MB that the compiler's thread keeps. Each call counts as much as the function is long.
  '--wasm-tiering-budget=2000000000',
  // A start allocates 20 MB that stay. Without this, V8 collects meanwhile, which takes 36 ms of a processor.
  '--initial-old-space-size=64',
  // Needed by src/server/idle-memory.ts.
  '--expose-gc',
];
