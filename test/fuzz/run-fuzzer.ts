import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import type { FuzzJob, FuzzReport } from './fuzz-job.ts'
import type { FatalReport } from './watchdog.ts'

const CHILD = join(import.meta.dirname, 'child.ts')
/** A heap limit above the watchdog's, so that the watchdog ends the process and reports the input. */
const FLAGS = ['--max-old-space-size=2048', '--no-warnings']

/** Fuzzes a target in a separate process, which an endless loop or a lack of memory may end. */
export async function runFuzzer(order: FuzzJob): Promise<FuzzReport> {
  const [report] = await runFuzzers([order])
  return report as FuzzReport
}

/**
 * Does jobs one after another in one process, and returns their reports in this order. After an input that ended the
 * process, the other jobs have none.
 */
export async function runFuzzers(jobs: readonly FuzzJob[]): Promise<readonly FuzzReport[]> {
  const child = spawn(process.execPath, [...FLAGS, CHILD, JSON.stringify(jobs)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.err += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  const reports = output.out
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as FuzzReport | FatalReport)
    .map((one) => ('inputs' in one ? one : { inputs: 0, kept: 0, characters: 0, peakMib: 0, ...one }))
  if (reports.length > 0 && (reports.length === jobs.length || reports.at(-1)?.failure)) return reports
  const { target, seed } = jobs[reports.length] as FuzzJob
  throw new Error(`fuzzing ${target} with seed ${seed} ended with ${code}: ${output.err}`)
}
