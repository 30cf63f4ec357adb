import { expect, test } from 'vitest'
import { runOverload } from '../load/overload-run.ts'

test('at five times its capacity the gateway serves 80 % of its capacity and refuses the other calls at once; later it serves all', {
  timeout: 200_000,
}, async () => {
  const report = await runOverload({
    // A converted response of 800 words, which costs as much CPU time as typical calls do.
    upstream: 'stream',
    flags: '--max-old-space-size=512',
    apart: true,
    clients: 64,
    measuredSeconds: 10,
    times: 5,
    seconds: 60,
    settlingSeconds: 3,
    restSeconds: 5,
    afterwards: 0.4,
  })
  console.info(JSON.stringify(report))
  expect(Object.keys(report.counts)).toEqual(['200', '503'])
  expect(report.served).toBeGreaterThanOrEqual(0.8 * report.capacity)
  // Served calls wait for up to two seconds.
  expect(report.settledAnswers?.p50).toBeLessThanOrEqual(2_500)
  expect(report.settledAnswers?.p99).toBeLessThanOrEqual(3_000)
  expect(report.settledRefusals?.p99).toBeLessThanOrEqual(20)
  // Refusals wait until the overload is recognised.
  expect(report.refusals?.max).toBeLessThanOrEqual(3_000)
  expect(Object.keys(report.afterwards)).toEqual(['200'])
  expect(report.charged).toBe(report.answered)
})

test('at twelve times its capacity with slow upstreams, served calls wait at most about 2 s, and others are refused at once', {
  timeout: 200_000,
}, async () => {
  const report = await runOverload({
    upstream: 'stream',
    afterMs: 1_000,
    flags: '--max-old-space-size=512',
    apart: true,
    // A closed loop underestimates the capacity of slow upstreams: these calls are far fewer than there is
    // CPU time for.
    clients: 300,
    measuredSeconds: 10,
    times: 12,
    seconds: 30,
    // Calls that were admitted before the overload is recognised finish a second later.
    settlingSeconds: 8,
    restSeconds: 0,
    afterwards: 0.9,
  })
  console.info(JSON.stringify(report))
  expect(Object.keys(report.counts)).toEqual(['200', '503'])
  expect(report.served).toBeGreaterThanOrEqual(0.8 * report.capacity)
  // Calls wait for two seconds, and for their upstream for one.
  expect(report.settledAnswers?.p50).toBeLessThanOrEqual(3_500)
  expect(report.settledRefusals?.p50).toBeLessThanOrEqual(20)
  expect(Object.keys(report.afterwards)).toEqual(['200'])
  expect(report.charged).toBe(report.answered)
})
