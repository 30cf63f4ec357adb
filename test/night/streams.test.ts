import { expect, test } from 'vitest'
import { runStreams } from '../load/streams-run.ts'

test('1,000 streams of ten events a second for ten minutes have no error, little jitter, and bounded memory', {
  timeout: 900_000,
}, async () => {
  const streams = 1000
  const report = await runStreams({ streams, eventsPerSecond: 10, seconds: 600 })
  console.info(JSON.stringify(report))
  expect(report.wrong).toEqual([])
  expect(report.complete).toBe(streams)
  expect(report.charged).toBe(streams)
  expect(report.jitterMs.p99).toBeLessThanOrEqual(100)
  expect(report.residentMb).toBeLessThanOrEqual(400)
  expect(report.loopLateMs.p99).toBeLessThanOrEqual(50)
  expect(report.loopLateMs.max).toBeLessThanOrEqual(250)
})

test('2,000 streams of ten events a second for a minute have no error', { timeout: 180_000 }, async () => {
  const streams = 2000
  const report = await runStreams({ streams, eventsPerSecond: 10, seconds: 60 })
  console.info(JSON.stringify(report))
  expect(report.wrong).toEqual([])
  expect(report.complete).toBe(streams)
})

test('5,000 silent streams for half a minute are kept in bounded memory', {
  timeout: 180_000,
}, async () => {
  const streams = 5000
  const report = await runStreams({ streams, eventsPerSecond: 1 / 30, seconds: 60 })
  console.info(JSON.stringify(report))
  expect(report.wrong).toEqual([])
  expect(report.complete).toBe(streams)
  expect(report.charged).toBe(streams)
  expect(report.residentMb).toBeLessThanOrEqual(1000)
})

test('5,000 streams of an event a second for a minute take at most 30 KB each, with 20 ms of jitter', {
  timeout: 300_000,
}, async () => {
  const streams = 5000
  const report = await runStreams({ streams, eventsPerSecond: 1, seconds: 60, earlier: 4000 })
  console.info(JSON.stringify(report))
  expect(report.wrong).toEqual([])
  expect(report.complete).toBe(streams)
  expect(report.charged).toBe(streams)
  expect(report.streamKb).toBeLessThanOrEqual(30)
  expect(report.jitterMs.p99).toBeLessThanOrEqual(20)
})
