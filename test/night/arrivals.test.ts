import { expect, onTestFinished, test } from 'vitest'
import { startLoadFixture } from '../load/load-fixture.ts'

test('1,000 calls a second for five minutes are answered without an error and with little delay, and each is charged once', {
  timeout: 500_000,
}, async () => {
  const fixture = await startLoadFixture({ upstream: 'completion' })
  onTestFinished(() => fixture.close())
  const direct = await fixture.arrive({ perSecond: 1_000 }, 30, { whom: 'upstream' })
  const through = await fixture.arrive({ perSecond: 1_000 }, 300)
  const charged = fixture.charged()
  const most = await fixture.arrive({ clients: 64 }, 10)
  console.info(
    JSON.stringify({ direct: direct.latencies, through: through.latencies, sentLate: through.sentLate }),
  )
  console.info(`64 clients that wait for their answers: ${(most.counts['200'] ?? 0) / 10} calls a second`)
  expect(through.counts).toEqual({ '200': 300_000 })
  expect(charged).toBe(300_000)
  const added = (part: 'p50' | 'p99'): number =>
    (through.latencies['200']?.[part] ?? Number.NaN) - (direct.latencies['200']?.[part] ?? Number.NaN)
  expect(added('p50')).toBeLessThanOrEqual(3)
  expect(added('p99')).toBeLessThanOrEqual(30)
})
