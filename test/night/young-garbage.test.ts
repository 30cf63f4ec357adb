import process from 'node:process'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import type { ArrivalsResult } from '../load/arrivals.ts'
import { startLoadFixture } from '../load/load-fixture.ts'

const PRELOAD = new URL('../fixtures/heap-preload.ts', import.meta.url)

/** Maximum bytes kept after thousands of calls; a tenth of their allocations would be fifty times as much. */
const KEPT_BYTES = 1_000_000

test('almost none of the objects that a call creates survive into the old generation of the heap', async () => {
  const fixture = await startLoadFixture({ upstream: 'completion', flags: `--import=${PRELOAD.href}` })
  onTestFinished(() => fixture.close())
  const old = async (): Promise<number> => {
    const before = fixture.gateway.logs().length
    process.kill(fixture.gateway.pid, 'SIGUSR2')
    for (;;) {
      const said = /bytes among the old: (\d+)/.exec(fixture.gateway.logs().slice(before))
      if (said) return Number(said[1])
      await sleep(10)
    }
  }
  const called = (seconds: number): Promise<ArrivalsResult> => fixture.arrive({ clients: 32 }, seconds)
  // Waits until the gateway has released the memory of its start, so that the remaining objects are old.
  await sleep(5_000)
  await called(4)
  const grown: number[] = []
  for (let round = 1; round <= 3; round++) {
    const before = await old()
    const { counts } = await called(2)
    expect(counts['200']).toBeGreaterThan(2_000)
    grown.push(Math.abs((await old()) - before))
  }
  console.info(JSON.stringify(grown))
  // The median of three: the compiler may have worked in one of them.
  expect(grown.toSorted((a, b) => a - b)[1]).toBeLessThan(KEPT_BYTES)
})
