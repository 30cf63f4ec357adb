import { writeSync } from 'node:fs'
import process from 'node:process'
import { setInterval } from 'node:timers'
import { Worker, isMainThread, workerData } from 'node:worker_threads'

const LOOK_MS = 100
/** CPU time that one input may take: a machine that is busy with others makes none of it slow. */
const MOST_CPU_MS = 2_000
/** Memory that the process may have. What is under way is then to blame, or what came before it. */
const MOST_BYTES = 1_200 * 2 ** 20

/** Shared with the thread that watches: the number of runs, the length of the input, and the input. */
interface Watched {
  readonly numbers: Int32Array<SharedArrayBuffer>
  readonly bytes: Uint8Array<SharedArrayBuffer>
}

/** What is printed of a process that is ended; the rest of its report is lost. */
export interface LastWords {
  readonly failure: { readonly input: string; readonly error: string }
}

/**
 * Watches the inputs that this process runs; one without an end, or without bound, ends the process, and is
 * told.
 */
export function watchInputs(most: number): { onRun(input: Buffer): void; stop(): Promise<unknown> } {
  const watched: Watched = {
    numbers: new Int32Array(new SharedArrayBuffer(8)),
    bytes: new Uint8Array(new SharedArrayBuffer(most)),
  }
  const worker = new Worker(new URL(import.meta.url), { workerData: watched })
  worker.unref()
  return {
    onRun(input) {
      watched.bytes.set(input.subarray(0, most))
      watched.numbers[1] = Math.min(most, input.length)
      Atomics.add(watched.numbers, 0, 1)
    },
    stop: () => worker.terminate(),
  }
}

if (!isMainThread) watch(workerData as Watched)

function watch({ numbers, bytes }: Watched): void {
  let run = -1
  let beganMs = 0
  setInterval(() => {
    const { user, system } = process.cpuUsage()
    const cpuMs = (user + system) / 1_000
    const now = Atomics.load(numbers, 0)
    if (now !== run) {
      run = now
      beganMs = cpuMs
    }
    const isTooLong = run > 0 && cpuMs - beganMs > MOST_CPU_MS
    const isTooLarge = process.memoryUsage.rss() > MOST_BYTES
    if (!isTooLong && !isTooLarge) return
    const input = Buffer.from(bytes.subarray(0, numbers[1])).toString('base64')
    const error = isTooLong ? 'it does not end' : 'it takes memory without bound'
    const words: LastWords = { failure: { input, error } }
    writeSync(1, `${JSON.stringify(words)}\n`)
    process.kill(process.pid, 'SIGKILL')
  }, LOOK_MS)
}
