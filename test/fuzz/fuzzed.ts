import { spawn } from 'node:child_process'
import { join } from 'node:path'
import process from 'node:process'
import type { Order, Report } from './order.ts'
import type { LastWords } from './watchdog.ts'

const CHILD = join(import.meta.dirname, 'child.ts')
/** A heap beyond what the watchdog lets the process have: it is the one to tell which input took it. */
const FLAGS = ['--max-old-space-size=2048', '--no-warnings']

/**
 * Fuzzes a target in a process of its own: one that does not end, or takes all memory, takes nothing else
 * along.
 */
export async function fuzzed(order: Order): Promise<Report> {
  const child = spawn(process.execPath, [...FLAGS, CHILD, JSON.stringify(order)], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  const said = { out: '', err: '' }
  child.stdout.on('data', (chunk: Buffer) => (said.out += chunk.toString()))
  child.stderr.on('data', (chunk: Buffer) => (said.err += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('close', resolve))
  const last = said.out.trim().split('\n').pop() ?? ''
  if (last.startsWith('{')) {
    const words = JSON.parse(last) as Report | LastWords
    return 'inputs' in words ? words : { inputs: 0, kept: 0, characters: 0, peakMib: 0, ...words }
  }
  throw new Error(`fuzzing ${order.target} with seed ${order.seed} ended with ${code}: ${said.err}`)
}
