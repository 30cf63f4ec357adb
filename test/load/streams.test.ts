import { expect, test } from 'vitest'
import { runStreams } from './streams-run.ts'

test('200 streams of ten events a second run side by side without an error, each charged exactly', {
  timeout: 60_000,
}, async () => {
  const streams = 200
  const report = await runStreams({ streams, eventsPerSecond: 10, seconds: 5 })
  console.info(JSON.stringify(report))
  expect(report.wrong).toEqual([])
  expect(report.complete).toBe(streams)
  expect(report.events).toBe(streams * 50)
  expect(report.charged).toBe(streams)
})
