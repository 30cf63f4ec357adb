import { Worker } from 'node:worker_threads'

/** What a thread is started with. */
export interface ThreadOptions {
  /** Name of the thread, for the system and in the log. */
  readonly name: string
  readonly workerData?: unknown
  /** Maximum heap in MiB, of old and of young objects. A thread that needs more ends. */
  readonly maxOldMb?: number
  readonly maxYoungMb?: number
}

/** Starts a thread. `module` is the path of its code from the module `from` (an `import.meta.url`), without extension. */
export function startThread(
  module: string,
  from: string,
  { name, workerData, maxOldMb, maxYoungMb }: ThreadOptions,
): Worker {
  return new Worker(urlOfHelper(module, from), {
    name,
    workerData,
    // Options of the main program, such as `--eval` or the debugger's port, are not passed on to the thread.
    execArgv: [],
    resourceLimits: {
      ...(maxOldMb !== undefined && { maxOldGenerationSizeMb: maxOldMb }),
      ...(maxYoungMb !== undefined && { maxYoungGenerationSizeMb: maxYoungMb }),
    },
  })
}

/** The file of a helper's code. Its extension is that of the module `from`: .ts in the source, and .js in the build. */
export function urlOfHelper(module: string, from: string): URL {
  return new URL(`${module}${from.slice(from.lastIndexOf('.'))}`, from)
}
