// Memory that the C library keeps: glibc gives whole pages that are free between others back when it is told to look
// for them, and no sooner. At full speed that is 90 of 120 MB.

/** What is used of Node's `node:ffi`, which its types do not know yet. */
interface ForeignFunctions {
  dlopen(
    library: string,
    functions: { readonly malloc_trim: { readonly arguments: readonly ['uint64']; readonly return: 'int32' } },
  ): { readonly functions: { malloc_trim(pad: bigint): number } };
}

let mallocTrim: ((pad: bigint) => number) | undefined;

/**
 * malloc_trim(3), of all threads: 1 to 10 ms, in which they may wait for memory. Does nothing where there is no such
 * call, or no way to make it.
 */
export function trimHeap(): void {
  try {
    // Cast: see there.
    const foreign = process.getBuiltinModule('node:ffi') as unknown as ForeignFunctions | undefined;
    mallocTrim ??= foreign?.dlopen('libc.so.6', { malloc_trim: { arguments: ['uint64'], return: 'int32' } }).functions
      .malloc_trim;
    mallocTrim?.(0n);
  } catch {
    mallocTrim = () => 0;
  }
}
