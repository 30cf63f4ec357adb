import { expect, onTestFinished, test } from 'vitest'
import { setLoadStage } from './load-stage.ts'

test('200 calls a second in an open loop: no error, and each is charged once', {
  timeout: 300_000,
}, async () => {
  const stage = await setLoadStage({ upstream: 'completion' })
  onTestFinished(() => stage.close())
  const result = await stage.arrive({ perSecond: 200 }, 5)
  console.info(JSON.stringify(result.latencies))
  expect(result.counts).toEqual({ '200': 1_000 })
  expect(stage.charged()).toBe(1_000)
})
