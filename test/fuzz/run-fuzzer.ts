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
  const child = spawn(process.execPath, [...FLAGS, CHILD, JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const output = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (output.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (output.err += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  const last = output.out.trim().split('\n').pop() ?? ''
  if (last.startsWith('{')) {
    const report = JSON.parse(last) as FuzzReport | FatalReport
    return 'inputs' in report ? report : { inputs: 0, kept: 0, characters: 0, peakMib: 0, ...report }
  }
  throw new Error(`fuzzing ${order.target} with seed ${order.seed} ended with ${code}: ${output.err}`)
}
