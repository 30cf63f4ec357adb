import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { fixtureOfBoth } from '../conversion/fixture.ts'
import { type Case, requestText } from '../corpus/case.ts'
import { corpus } from '../corpus/corpus.ts'
import { replay } from '../corpus/replay.ts'
import type { Fixture } from '../fixtures/fixture.ts'

/**
 * The maximum cost for each byte sent, relative to a normal request: above it, a small client could bring
 * down a large gateway.
 */
const MAX = 100
/** A tick of the system's clock of CPU time, in milliseconds. */
const TICK_MS = 10
/** Growth of the heap before it is collected, whatever the requests, in MiB. */
const FLOOR_MIB = 256

let fixture: Fixture
beforeAll(async () => {
  fixture = await fixtureOfBoth({}, { quota: 400_000_000_000_000 })
})
afterAll(() => fixture?.close())

/** The cost of some work to the gateway: milliseconds of CPU time, and the growth of peak memory in MiB. */
async function costOf(work: () => Promise<unknown>): Promise<{ cpuMs: number; peakMib: number }> {
  const of = `/proc/${fixture.gateway.pid}`
  const kibOf = (name: string): number =>
    Number(new RegExp(`${name}:\\s+(\\d+) kB`).exec(readFileSync(`${of}/status`, 'utf8'))?.[1])
  const cpuMs = (): number => {
    const [user = '', system = ''] =
      readFileSync(`${of}/stat`, 'utf8').split(') ')[1]?.split(' ').slice(11) ?? []
    return (Number(user) + Number(system)) * TICK_MS
  }
  // Resets the peak.
  writeFileSync(`${of}/clear_refs`, '5')
  const [before, residentKib] = [cpuMs(), kibOf('VmRSS')]
  await work()
  return { cpuMs: cpuMs() - before, peakMib: (kibOf('VmHWM') - residentKib) / 1024 }
}

/** A valid request with as many bytes as this one sends. */
function plainLike(each: Case, index: number): Case {
  return {
    name: `plain ${index}`,
    protocols: each.protocols,
    outcome: 'either',
    body(model, protocol) {
      const body = Buffer.from(each.body(model, protocol) as string)
      const { length } = each.wire?.(body) ?? body
      const least = requestText(protocol, model, ['messages', '[{"role":"user","content":""}]']).length
      const content = 'plain text '
        .repeat(Math.ceil(Math.max(0, length - least) / 11))
        .slice(0, Math.max(0, length - least))
      return requestText(protocol, model, ['messages', JSON.stringify([{ role: 'user', content }])])
    },
  }
}

const bytesOf = (cases: readonly Case[]): number =>
  cases.reduce((sum, each) => {
    const body = Buffer.from(each.body('m', each.protocols[0] ?? 'chat') as string)
    return sum + (each.wire?.(body) ?? body).length
  }, 0)

test.each([...corpus()])(
  `hostile requests take less than ${MAX} times as much CPU time for each byte as normal requests: %s`,
  {
    timeout: 600_000,
  },
  async (name, cases) => {
    const plain = cases.map(plainLike)
    // Compiles and caches everything before both measurements.
    await replay(fixture, plain.slice(0, 100))
    const usual = await costOf(() => replay(fixture, plain))
    const odd = await costOf(() => replay(fixture, cases))
    const bytes = bytesOf(cases)
    const times = odd.cpuMs / Math.max(usual.cpuMs, TICK_MS)
    console.log(
      `${name}: ${cases.length} inputs, ${bytes} bytes; CPU ${odd.cpuMs} ms, ${times.toFixed(1)} times as much as plain ones; peak +${odd.peakMib.toFixed(0)} MiB, plain +${usual.peakMib.toFixed(0)} MiB`,
    )
    expect(times).toBeLessThan(MAX)
    expect(odd.peakMib).toBeLessThan(Math.max(FLOOR_MIB, (MAX * bytes) / cases.length / 2 ** 20))
  },
)
