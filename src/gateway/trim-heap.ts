/** Part of the library that calls functions of the C library. */
interface ForeignLibraries {
  load(path: string): { func(declaration: string): TrimFunction }
}

interface TrimFunction {
  async(pad: number, done: (error: unknown) => void): void
}

/**
 * Returns the free memory of the C library's heap to the system. Buffers of requests and responses leave
 * holes there, and glibc by itself returns only its end. Runs on another thread, but allocations wait for it:
 * half a second for 400 MB. Does nothing if the C library has no such function, or if `koffi` is not
 * installed.
 */
export async function trimHeap(): Promise<void> {
  if (process.platform !== 'linux') return
  try {
    const { default: libraries } = (await import('koffi')) as { default: ForeignLibraries }
    const trim = libraries.load('libc.so.6').func('int malloc_trim(size_t)')
    await new Promise<void>((resolve) => trim.async(0, () => resolve()))
  } catch {
    // The process keeps the memory and can use it again.
  }
}
