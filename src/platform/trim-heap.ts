// Returning memory that the C library keeps: glibc releases free pages between used ones only on request. At full speed
// that is 90 of 120 MB.

/** The part of Node's `node:ffi` used here; its types do not know it yet. */
interface ForeignFunctions {
  dlopen(
    library: string,
    functions: { readonly malloc_trim: { readonly arguments: readonly ['uint64']; readonly return: 'int32' } },
  ): { readonly functions: { malloc_trim(pad: bigint): number } };
}

let mallocTrim: ((pad: bigint) => number) | undefined;

/**
 * Calls malloc_trim(3) for all threads: 1 to 10 ms, in which allocations may wait. Does nothing if the call or the FFI
 * is missing.
 */
export function trimHeap(): void {
  try {
    // Cast: Node's types do not know this module yet.
    const foreign = process.getBuiltinModule('node:ffi') as unknown as ForeignFunctions | undefined;
    mallocTrim ??= foreign?.dlopen('libc.so.6', { malloc_trim: { arguments: ['uint64'], return: 'int32' } }).functions
      .malloc_trim;
    mallocTrim?.(0n);
  } catch {
    mallocTrim = () => 0;
  }
}
