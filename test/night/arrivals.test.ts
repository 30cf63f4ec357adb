import { describe, expect, test } from 'vitest'
import { runArrivals } from '../load/arrivals-run.ts'

test('1,000 calls a second for five minutes: no error, and each is charged once', {
  timeout: 400_000,
}, async () => {
  const report = await runArrivals([{ perSecond: 1000, seconds: 300 }])
  console.info(JSON.stringify(report))
  expect(report.stretches[0]?.counts).toEqual({ '200': 300_000 })
  expect(report.charged).toBe(300_000)
})

describe('more calls than can be served', () => {
  test('are refused early, what is let in is served, and it is over when they stop', {
    timeout: 200_000,
  }, async () => {
    const { stretches, answered, charged } = await runArrivals([
      { perSecond: 4000, seconds: 10 },
      { perSecond: 25_000, seconds: 30 },
      { perSecond: 0.2, seconds: 5 },
      { perSecond: 500, seconds: 10 },
    ])
    console.info(JSON.stringify(stretches))
    const [calm, storm, , after] = stretches
    expect(Object.keys(calm?.counts ?? {})).toEqual(['200'])
    const goodput = (storm?.counts['200'] ?? 0) / 30
    expect(goodput).toBeGreaterThanOrEqual(0.8 * 4000)
    expect(storm?.counts['503']).toBeGreaterThan(0)
    // Five seconds later nothing of it is left.
    expect(after?.counts).toEqual({ '200': 5000 })
    expect(charged).toBe(answered)
  })
})
