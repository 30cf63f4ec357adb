import { writeSync } from 'node:fs'
import process from 'node:process'
import { setInterval } from 'node:timers'
import { Worker, isMainThread, workerData } from 'node:worker_threads'

const CHECK_INTERVAL_MS = 100
/** CPU time that one input may take: a machine that is busy with others makes none of it slow. */
const MAX_CPU_MS = 2_000
/** Memory that the process may have. What is under way is then to blame, or what came before it. */
const MAX_RSS_BYTES = 1_200 * 2 ** 20

/** Shared with the thread that watches: the number of runs, the length of the input, and the input. */
interface SharedInput {
  readonly numbers: Int32Array<SharedArrayBuffer>
  readonly bytes: Uint8Array<SharedArrayBuffer>
}

/** What is printed of a process that is ended; the rest of its report is lost. */
export interface FatalReport {
  readonly failure: { readonly input: string; readonly error: string }
}

/**
 * Watches the inputs that this process runs; one without an end, or without bound, ends the process, and is
 * told.
 */
export function watchInputs(maxBytes: number): { onRun(input: Buffer): void; stop(): Promise<unknown> } {
  const shared: SharedInput = {
    numbers: new Int32Array(new SharedArrayBuffer(8)),
    bytes: new Uint8Array(new SharedArrayBuffer(maxBytes)),
  }
  const worker = new Worker(new URL(import.meta.url), { workerData: shared })
  worker.unref()
  return {
    onRun(input) {
      shared.bytes.set(input.subarray(0, maxBytes))
      shared.numbers[1] = Math.min(maxBytes, input.length)
      Atomics.add(shared.numbers, 0, 1)
    },
    stop: () => worker.terminate(),
  }
}

if (!isMainThread) watch(workerData as SharedInput)

function watch({ numbers, bytes }: SharedInput): void {
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
    const isTooLong = run > 0 && cpuMs - beganMs > MAX_CPU_MS
    const isTooLarge = process.memoryUsage.rss() > MAX_RSS_BYTES
    if (!isTooLong && !isTooLarge) return
    const input = Buffer.from(bytes.subarray(0, numbers[1])).toString('base64')
    const error = isTooLong ? 'it does not end' : 'it takes memory without bound'
    const report: FatalReport = { failure: { input, error } }
    writeSync(1, `${JSON.stringify(report)}\n`)
    process.kill(process.pid, 'SIGKILL')
  }, CHECK_INTERVAL_MS)
}
