import { expect, onTestFinished, test } from 'vitest'
import { startLoadFixture } from './load-fixture.ts'

test('200 calls a second for five seconds are all answered, and each is charged once', {
  timeout: 300_000,
}, async () => {
  const fixture = await startLoadFixture({ upstream: 'completion' })
  onTestFinished(() => fixture.close())
  let charged: number | undefined
  const counts = async (): Promise<unknown> => {
    // It has just started in each attempt.
    if (charged !== undefined) await fixture.gateway.restart()
    charged = fixture.charged()
    const result = await fixture.arrive({ perSecond: 200 }, 5)
    console.info(JSON.stringify(result.latencies))
    return result.counts
  }
  // While other programs keep the machine busy, it is overloaded by so many calls, and refuses some; clients leave others.
  await expect.poll(counts, { timeout: 240_000 }).toEqual({ '200': 1_000 })
  expect(fixture.charged() - (charged ?? 0)).toBe(1_000)
})
