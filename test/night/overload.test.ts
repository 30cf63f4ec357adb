import { expect, test } from 'vitest'
import { runOverload } from '../load/overload-run.ts'

test('five times as many calls as can be served, for a minute: nearly as many are served, the others are refused at once, and it is over when they stop', {
  timeout: 200_000,
}, async () => {
  const report = await runOverload({
    // Converted, and of 800 words: a call that costs what calls of models do.
    upstream: 'stream',
    flags: '--max-old-space-size=512',
    apart: true,
    callers: 64,
    measuredSeconds: 10,
    times: 5,
    seconds: 60,
    settlingSeconds: 3,
    restSeconds: 5,
    afterwards: 0.4,
  })
  console.info(JSON.stringify(report))
  expect(Object.keys(report.counts)).toEqual(['200', '503'])
  expect(report.served).toBeGreaterThanOrEqual(0.8 * report.most)
  // They wait for two seconds, and are served.
  expect(report.settledAnswers?.p99).toBeLessThanOrEqual(3_000)
  expect(report.settledRefusals?.p99).toBeLessThanOrEqual(20)
  // Until it is seen that more come than can be served, they wait.
  expect(report.refusals?.most).toBeLessThanOrEqual(3_000)
  expect(Object.keys(report.afterwards)).toEqual(['200'])
  expect(report.charged).toBe(report.answered)
})

test('many times as many calls as can be served, of upstreams that take a second: they are served two seconds later, and the others are refused at once', {
  timeout: 200_000,
}, async () => {
  const report = await runOverload({
    upstream: 'stream',
    afterMs: 1_000,
    flags: '--max-old-space-size=512',
    apart: true,
    // Who waits for its answers is not served as fast as could be: these are many fewer than there is time for.
    callers: 300,
    measuredSeconds: 10,
    times: 12,
    seconds: 30,
    // What was let in until it is seen answers at once, a second later.
    settlingSeconds: 8,
    restSeconds: 0,
    afterwards: 0.9,
  })
  console.info(JSON.stringify(report))
  expect(report.served).toBeGreaterThanOrEqual(0.8 * report.most)
  // Two seconds until they begin, and the upstream's one.
  expect(report.settledAnswers?.p50).toBeLessThanOrEqual(3_500)
  expect(report.settledRefusals?.p50).toBeLessThanOrEqual(20)
  expect(Object.keys(report.afterwards)).toEqual(['200'])
  expect(report.charged).toBe(report.answered)
})
