import { expect, test } from 'vitest'
import { runStreams } from '../load/streams-run.ts'

test('1,000 streams of ten events a second for ten minutes are complete, delay events little, and need at most 400 MB', {
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

test('2,000 streams of ten events a second for a minute arrive complete and without errors', {
  timeout: 180_000,
}, async () => {
  const streams = 2000
  const report = await runStreams({ streams, eventsPerSecond: 10, seconds: 60 })
  console.info(JSON.stringify(report))
  expect(report.wrong).toEqual([])
  expect(report.complete).toBe(streams)
})

test('5,000 streams that are silent for half a minute are kept open with at most 1,000 MB of memory', {
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

test('5,000 streams with one event a second for a minute need at most 30 KB of memory each, and delay events by at most 20 ms', {
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
