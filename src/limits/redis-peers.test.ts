import { describe, expect, test } from 'vitest'
import { readHeartbeat, readSlotResponse, readPermitResponse, ServerClock } from './redis-peers.ts'

// Buckets are 8 ms wide, and 31 of them lie ahead.
const QUESTION = {
  max: 10,
  windowMs: 1024,
  known: 0,
  bucket: 0,
  used: 0,
  returned: 0,
  kept: 0,
  added: [],
  need: 2,
  want: 3,
}

test('a response of Redis about rate limit permits or a heartbeat is parsed', () => {
  expect(readPermitResponse(['1.5', 1000, 7, 3, 60, 50, 4, 60, 3], QUESTION)).toEqual({
    nowMs: 1000,
    version: 7,
    granted: 3,
    bucket: 60,
    amounts: [
      [50, 4],
      [60, 3],
    ],
  })
  expect(readPermitResponse(['1.5'], QUESTION)).toEqual({ generation: '1.5' })
  expect(readHeartbeat([1000, '1.5'])).toEqual({ nowMs: 1000, generation: '1.5' })
})

describe('invalid responses of Redis', () => {
  test.each([
    ['nothing', null],
    ['no list', 'OK'],
    ['an empty list', []],
    ['no generation', [7]],
    ['text that is not a generation', ['x'.repeat(10)]],
    ['too little', ['1.5', 1000, 7, 3]],
    ['text for a number', ['1.5', 1000, 7, '3', 60]],
    ['half a number', ['1.5', 1000, 7, 0.5, 60]],
    ['a version below nothing', ['1.5', 1000, -1, 1, 60]],
    ['less than nothing', ['1.5', 1000, 7, -1, 60]],
    ['more than was asked for', ['1.5', 1000, 7, 4, 60]],
    ['permits for ever', ['1.5', 1000, 7, 3, 100_000]],
    ['half a pair', ['1.5', 1000, 7, 3, 60, 50]],
    ['amounts after the last bucket', ['1.5', 1000, 7, 3, 60, 61, 1]],
    ['amounts out of order', ['1.5', 1000, 7, 3, 60, 50, 1, 50, 1]],
    ['more amounts than there can be', ['1.5', 9e6, 7, 0, 9e5, ...Array.from({ length: 2000 }, (_, i) => i)]],
  ])('an invalid response of Redis is refused: %s', (_, value) => {
    expect(() => readPermitResponse(value, QUESTION)).toThrow('invalid response')
  })

  test.each([[null], [[]], [[1, 2, 3]], [['1', '1.5']], [[-1, '1.5']], [[1]]])(
    'an invalid heartbeat response of Redis is refused: %j',
    (value) => {
      expect(() => readHeartbeat(value)).toThrow('invalid response')
    },
  )
})

describe('a response about slots', () => {
  const REPORT = { held: 3, want: 4, max: 5 }

  test('a response of Redis about slots for parallel calls is parsed', () => {
    expect(readSlotResponse(['1.5', 2], REPORT)).toEqual({ granted: 2 })
    expect(readSlotResponse(['1.5', 0], { ...REPORT, held: 9 })).toEqual({ granted: 0 })
    expect(readSlotResponse(['1.5'], REPORT)).toEqual({ generation: '1.5' })
  })

  test.each([
    ['grants more than the limit has', ['1.5', 3], REPORT],
    ['grants more than was requested', ['1.5', 2], { held: 0, want: 1, max: 5 }],
    ['grants to a node above the limit', ['1.5', 1], { held: 9, want: 4, max: 5 }],
    ['has a text for a number', ['1.5', '2'], REPORT],
    ['is too long', ['1.5', 1, 1], REPORT],
  ])('a response of Redis about slots for parallel calls is refused if it %s', (_, value, report) => {
    expect(() => readSlotResponse(value, report)).toThrow('invalid response')
  })
})

const HOUR = 3_600_000

test.each([
  ['goes on as ours does', [0, 250, 500], 0],
  ['is read late', [0, 1_200, 500], 0],
  ['is put forward', [0, HOUR + 250, HOUR + 500], 1],
  ['is put back: then all is counted longer, and nothing is forgotten', [0, -HOUR, -HOUR + 250], 0],
  ['is put forward again and again', [0, HOUR, 2 * HOUR], 2],
])(
  'the gateway counts the forward steps of the clock of a Redis server if the clock %s',
  (_, readings, steps) => {
    const clock = new ServerClock()
    for (const [i, reading] of readings.entries()) clock.observe(1.8e12 + reading, 5_000 + 250 * i)
    expect(clock.steps).toBe(steps)
  },
)
