import { beforeEach, describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { ChannelLoad } from './channel-load.ts'

const a = channelOf({ name: 'a' })
const b = channelOf({ name: 'b' })
const CALLS = { model: 'm', stream: true }

let nowMs: number
let load: ChannelLoad
beforeEach(() => {
  nowMs = 1_000
  load = new ChannelLoad(() => nowMs)
})

const measured = (balance: 'least_busy' | 'latency', calls = CALLS): number[] =>
  [a, b].map((channel) => load.measure(balance, calls, () => 0.5)?.(channel) ?? Number.NaN)

test("a channel's calls in flight are counted until they end, for the choice of the least busy channel", () => {
  load.begin(a)
  load.begin(a)
  load.begin(b)
  load.end(a)
  expect(measured('least_busy')).toEqual([1, 1])
  load.end(b)
  expect(measured('least_busy')).toEqual([1, 0])
})

describe('the time to the first byte', () => {
  test("a channel's time to the first byte is the median of the last minute, and infinite without a measurement", () => {
    for (const ms of [30, 500, 20]) load.noteFirstByte(a, CALLS, ms)
    expect(measured('latency')).toEqual([30, Number.POSITIVE_INFINITY])
    nowMs += 59_999
    load.noteFirstByte(a, CALLS, 700)
    expect(measured('latency')[0]).toBe(500)
    nowMs += 1
    expect(measured('latency')[0]).toBe(700)
    nowMs += 60_000
    expect(measured('latency')[0]).toBe(Number.POSITIVE_INFINITY)
  })

  test("a channel's time to the first byte is measured separately by model, for streams and for whole responses", () => {
    load.noteFirstByte(a, CALLS, 10)
    expect(measured('latency', { model: 'm', stream: false })[0]).toBe(Number.POSITIVE_INFINITY)
    expect(measured('latency', { model: 'n', stream: true })[0]).toBe(Number.POSITIVE_INFINITY)
  })

  test("the oldest measurements of a channel's time to the first byte are dropped when there are too many", () => {
    for (let i = 0; i < 101; i++) load.noteFirstByte(a, CALLS, 1_000)
    for (let i = 0; i < 51; i++) load.noteFirstByte(a, CALLS, 1)
    expect(measured('latency')[0]).toBe(1)
  })
})

test.each([
  ['weight', 0.5],
  ['least_busy', 0.099],
  ['latency', 0],
] as const)(
  'channels are chosen by weight in the balance mode weight, and for a tenth of the calls in other modes: %s at %d',
  (balance, drawn) => {
    expect(load.measure(balance, CALLS, () => drawn)).toBeUndefined()
  },
)
