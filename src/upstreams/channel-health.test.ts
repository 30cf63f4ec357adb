import { beforeEach, describe, expect, test } from 'vitest'
import { channelOf } from '../../test/samples/channel.ts'
import { ChannelHealth } from './channel-health.ts'

const ill = channelOf({ name: 'ill' })
const well = channelOf({ name: 'well' })

let health: ChannelHealth
beforeEach(() => {
  health = new ChannelHealth()
})

function fail(times: number, nowMs: number): void {
  for (let i = 0; i < times; i++) health.begin(ill).failed(nowMs)
}

describe('the health of a channel', () => {
  test('the circuit breaker of a channel opens at the fifth consecutive failure', () => {
    fail(4, 0)
    expect(health.isOpen(ill, 0)).toBe(false)
    health.begin(ill).succeeded()
    fail(4, 0)
    expect(health.isOpen(ill, 0)).toBe(false)
    fail(1, 0)
    expect(health.isOpen(ill, 0)).toBe(true)
    expect(health.isOpen(well, 0)).toBe(false)
    expect(health.openBreakers(0)).toBe(1)
  })

  test("once a channel's circuit breaker has been open for five seconds, a single attempt tries the channel", () => {
    fail(5, 0)
    expect(health.isOpen(ill, 4_999)).toBe(true)
    expect(health.isOpen(ill, 5_000)).toBe(false)
    const decisive = health.begin(ill)
    expect(health.isOpen(ill, 5_000)).toBe(true)
    decisive.succeeded()
    expect(health.isOpen(ill, 5_001)).toBe(false)
    expect(health.openBreakers(5_001)).toBe(0)
  })

  test('a channel that fails while its circuit breaker is half-open is skipped for twice as long, at most a minute', () => {
    fail(5, 0)
    let nowMs = 5_000
    for (const restMs of [10_000, 20_000, 40_000, 60_000, 60_000]) {
      fail(1, nowMs)
      expect(health.isOpen(ill, nowMs + restMs - 1)).toBe(true)
      expect(health.isOpen(ill, nowMs + restMs)).toBe(false)
      nowMs += restMs
    }
  })

  test('a channel is back as soon as it answers the deciding attempt, and skipped for twice as long if that answer breaks off', () => {
    const recovered: string[] = []
    health = new ChannelHealth((name) => recovered.push(name))
    fail(5, 0)
    const decisive = health.begin(ill)
    decisive.answered()
    expect(health.isOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(false)
    expect(health.breakerOf('ill', 5_000)).toEqual({
      state: 'closed',
      failures: 0,
      openForMs: 0,
      isTried: false,
    })
    expect([health.openBreakers(5_000), health.opened(), recovered]).toEqual([0, [], ['ill']])
    // Failures of others count like those of any channel.
    fail(4, 6_000)
    expect(health.isOpen(ill, 6_000)).toBe(false)
    decisive.failed(7_000)
    expect(health.isOpen(ill, 16_999)).toBe(true)
    expect(health.opened()).toEqual(['ill'])
    expect(health.isOpen(ill, 17_000)).toBe(false)
  })

  test('once another attempt has succeeded, the break of the answer that ended a cooldown is one failure', () => {
    fail(5, 0)
    const decisive = health.begin(ill)
    decisive.answered()
    health.begin(ill).succeeded()
    decisive.failed(7_000)
    expect(health.breakerOf('ill', 7_000)).toMatchObject({ state: 'closed', failures: 1 })
  })

  test('an answer that begins says nothing of other failures in a row', () => {
    fail(4, 0)
    health.begin(ill).answered()
    fail(1, 0)
    expect(health.isOpen(ill, 0)).toBe(true)
  })

  test('an attempt without a result leaves the circuit breaker half-open, however the attempt ended', () => {
    fail(5, 0)
    expect(() => {
      using attempt = health.begin(ill)
      expect(attempt).toBeDefined()
      expect(health.isOpen(ill, 5_000)).toBe(true)
      throw new Error('the charge could not be written')
    }).toThrow()
    expect(health.isOpen(ill, 5_000)).toBe(false)
    expect(health.openBreakers(5_000)).toBe(0)
  })

  test('while one attempt tests a channel with a half-open circuit breaker, other attempts that end do not end the test', () => {
    fail(5, 0)
    const beside = health.begin(well)
    const decisive = health.begin(ill)
    const second = health.begin(ill)
    beside[Symbol.dispose]()
    second[Symbol.dispose]()
    expect(health.isOpen(ill, 5_000)).toBe(true)
    decisive[Symbol.dispose]()
    expect(health.isOpen(ill, 5_000)).toBe(false)
  })

  test('a channel with health probes whose circuit breaker opened is skipped until a probe succeeds', () => {
    fail(5, 0)
    expect(health.isOpen(ill, 5_000)).toBe(false)
    expect(health.isOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(true)
    health.begin(ill).succeeded()
    expect(health.isOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(false)
  })

  test('only the first result of an attempt counts for the health of its channel', () => {
    for (let i = 0; i < 4; i++) {
      const attempt = health.begin(ill)
      attempt.failed(0)
      attempt.failed(0)
      attempt.succeeded()
      attempt[Symbol.dispose]()
    }
    expect(health.isOpen(ill, 0)).toBe(false)
    fail(1, 0)
    expect(health.isOpen(ill, 0)).toBe(true)
  })

  test("calls that were in flight when a channel's circuit breaker opened do not affect the breaker", () => {
    const attempts = Array.from({ length: 30 }, () => health.begin(ill))
    for (const [i, attempt] of attempts.entries()) attempt.failed(i)
    expect(health.isOpen(ill, 5_004)).toBe(false)
  })

  test('attempts that began before the circuit breaker opened say nothing of whether it closes', () => {
    const recovered: string[] = []
    health = new ChannelHealth((name) => recovered.push(name))
    const [early, late, broken] = [health.begin(ill), health.begin(ill), health.begin(ill)]
    fail(5, 0)
    early.succeeded()
    expect(health.isOpen(ill, 4_999)).toBe(true)
    const decisive = health.begin(ill)
    late.succeeded()
    broken.failed(5_000)
    expect(health.isOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(true)
    expect(health.breakerOf('ill', 5_000)).toMatchObject({ state: 'half-open', isTried: true })
    expect(recovered).toEqual([])
    decisive.succeeded()
    expect(health.isOpen({ ...ill, probe: 1_000 }, 5_000)).toBe(false)
    expect(recovered).toEqual(['ill'])
  })

  test('a pause that an upstream asks for is not ended by a response to an earlier request', () => {
    const earlier = health.begin(ill)
    health.begin(ill).failed(0, 20_000)
    earlier.succeeded()
    expect(health.isOpen(ill, 19_999)).toBe(true)
  })

  test('a channel is skipped for as long as its upstream asks for, at most five minutes', () => {
    health.begin(ill).failed(0, 20_000)
    expect(health.isOpen(ill, 19_999)).toBe(true)
    expect(health.isOpen(ill, 20_000)).toBe(false)
    health.begin(ill).succeeded()
    health.begin(ill).failed(0, 1e12)
    expect(health.isOpen(ill, 300_000)).toBe(false)
  })
})
