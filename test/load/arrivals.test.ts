import { expect, onTestFinished, test } from 'vitest'
import { startLoadFixture } from './load-fixture.ts'

test('200 calls a second for five seconds are all answered, and each is charged once', {
  timeout: 300_000,
}, async () => {
  const fixture = await startLoadFixture({ upstream: 'completion' })
  onTestFinished(() => fixture.close())
  const result = await fixture.arrive({ perSecond: 200 }, 5)
  console.info(JSON.stringify(result.latencies))
  expect(result.counts).toEqual({ '200': 1_000 })
  expect(fixture.charged()).toBe(1_000)
})
