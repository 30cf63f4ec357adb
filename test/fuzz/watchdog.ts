import { writeSync } from 'node:fs'
import process from 'node:process'
import { setInterval } from 'node:timers'
import { Worker, isMainThread, workerData } from 'node:worker_threads'
import type { InputBounds } from './fuzz-job.ts'

const CHECK_INTERVAL_MS = 100
const USUAL_BOUNDS: InputBounds = { cpuMs: 2_000, rssMib: 1_200 }

/** Data shared with the watchdog's thread: the number of runs, the input's length, its bytes, its bounds. */
interface SharedInput {
  readonly numbers: Int32Array<SharedArrayBuffer>
  readonly bytes: Uint8Array<SharedArrayBuffer>
  readonly bounds: InputBounds
}

/** Report of a process that the watchdog ended. */
export interface FatalReport {
  readonly failure: { readonly input: string; readonly error: string }
}

/** Ends this process, and reports the input, if one input takes too much time or memory. */
export function watchInputs(
  maxBytes: number,
  bounds = USUAL_BOUNDS,
): { onRun(input: Buffer): void; stop(): Promise<unknown> } {
  const shared: SharedInput = {
    numbers: new Int32Array(new SharedArrayBuffer(8)),
    bytes: new Uint8Array(new SharedArrayBuffer(maxBytes)),
    bounds,
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

function watch({ numbers, bytes, bounds }: SharedInput): void {
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
    const isTooLong = run > 0 && cpuMs - beganMs > bounds.cpuMs
    const isTooLarge = process.memoryUsage.rss() > bounds.rssMib * 2 ** 20
    if (!isTooLong && !isTooLarge) return
    const input = Buffer.from(bytes.subarray(0, numbers[1])).toString('base64')
    const error = isTooLong ? 'it does not end' : 'it takes memory without bound'
    const report: FatalReport = { failure: { input, error } }
    writeSync(1, `${JSON.stringify(report)}\n`)
    process.kill(process.pid, 'SIGKILL')
  }, CHECK_INTERVAL_MS)
}
