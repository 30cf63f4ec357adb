import { describe, expect, test } from 'vitest'
import { type Outcome, SimulatedLoop, type Traffic, type Wait } from '../../test/equipment/simulated-loop.ts'
import { type Memory, Overload } from './overload.ts'

const PLENTY: Memory = { isHigh: () => false }

/** A call costs a millisecond in all; its upstream answers at once. So a thousand a second are all that can be served. */
const CALL = { headMs: 0.03, refusalMs: 0.03, beginMs: 0.25, partMs: 0.72, upstreamMs: 1 }

function run(traffic: Traffic, stretch = 1): Outcome {
  const loop = new SimulatedLoop(stretch)
  return loop.run(new Overload(loop, PLENTY), traffic)
}

/** So many calls within a tenth of a second. */
function burst(calls: number): Pick<Traffic, 'perMs' | 'forMs'> {
  return { perMs: () => calls / 100, forMs: 100 }
}

/** Of so many of a thousand waits, no more than this one took longer. */
function share(waits: readonly Wait[], part: number): number {
  const sorted = waits.map(({ ms }) => ms).sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(part * sorted.length))] ?? 0
}

function sentFrom(ms: number, waits: readonly Wait[]): Wait[] {
  return waits.filter(({ sentMs }) => sentMs >= ms)
}

describe('a burst', () => {
  const kinds: readonly (readonly [string, Omit<Traffic, 'perMs' | 'forMs'>, number])[] = [
    ['calls', CALL, 1],
    ['calls on a machine that others use, too', CALL, 3],
    ['calls that cost six milliseconds each', { ...CALL, beginMs: 3, partMs: 3 }, 1],
    ['calls to a slow upstream', { ...CALL, upstreamMs: 1_000 }, 1],
    ['calls to a slow upstream on a slow machine', { ...CALL, upstreamMs: 3_000 }, 4],
    ['streams', { ...CALL, partMs: 0.02, parts: 100, paceMs: 100, upstreamMs: 500 }, 1],
    ['streams on a slow machine', { ...CALL, partMs: 0.02, parts: 50, paceMs: 200, upstreamMs: 500 }, 3],
  ]
  for (const calls of [400, 1_000, 2_000])
    test.each(kinds)(`of ${calls} is let in: %s`, (_, cost, stretch) => {
      const { began, refused, served } = run({ ...cost, ...burst(calls) }, stretch)
      expect(refused).toEqual([])
      expect(began).toHaveLength(calls)
      expect(served).toBe(calls)
    })

  test('is let in each time that the one before it is over', () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, PLENTY)
    for (let i = 0; i < 5; i++) expect(loop.run(overload, { ...CALL, ...burst(2_000) }).refused).toEqual([])
  })

  test('of 400 that wait for a slow upstream does not wait for its answers', () => {
    const { began } = run({ ...CALL, ...burst(400), upstreamMs: 5_000 })
    // A hundred milliseconds of work, and at most three quarters of the time that is left.
    expect(share(began, 1)).toBeLessThan(1_000)
  })

  test('without end is refused from some point on: waiting takes memory', () => {
    const { refused } = run({ ...CALL, perMs: () => 40, forMs: 200 })
    expect(refused.length).toBeGreaterThan(5_000)
  })
})

describe('a storm of twice what can be served', () => {
  const storm = { ...CALL, perMs: () => 2, forMs: 20_000 }

  test('sheds about half, and leaves the loop no idle moment', () => {
    const { began, refused, endMs } = run(storm)
    expect(refused.length / 40_000).toBeGreaterThan(0.45)
    expect(refused.length / 40_000).toBeLessThan(0.6)
    // Work of all that were served, and of all that were refused.
    expect(began.length + refused.length * 0.06).toBeGreaterThan(0.9 * endMs)
  })

  test('keeps waits near two seconds at most, and says refusals at once', () => {
    const { began, refused } = run(storm)
    expect(share(began, 0.99)).toBeLessThan(2_500)
    expect(share(sentFrom(3_000, refused), 0.99)).toBeLessThan(20)
    expect(share(refused, 1)).toBeLessThan(100)
  })

  test('ends with the load: those that come when it is over are let in, and wait for those before them alone', () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, PLENTY)
    const { refused } = loop.run(overload, { ...storm, perMs: (ms) => (ms < 10_000 ? 2 : 0.5) })
    expect(sentFrom(10_100, refused)).toEqual([])
    const { began } = loop.run(overload, { ...storm, perMs: () => 0.5, forMs: 5_000 })
    expect(share(began, 1)).toBeLessThan(5)
  })

  test('sheds by what the machine leaves to it', () => {
    const { began, refused } = run({ ...storm, perMs: () => 1 }, 2)
    expect(refused.length / 20_000).toBeGreaterThan(0.4)
    expect(refused.length / 20_000).toBeLessThan(0.6)
    // What came first is taken for a burst.
    expect(share(sentFrom(10_000, began), 0.99)).toBeLessThan(3_000)
  })
})

describe('other storms', () => {
  test('of five times what can be served: all time that refusing leaves goes into serving', () => {
    const { began, refused, endMs } = run({ ...CALL, perMs: () => 5, forMs: 20_000 })
    expect(began.length).toBeGreaterThan(0.9 * (endMs - refused.length * 0.06))
    expect(share(sentFrom(3_000, refused), 0.99)).toBeLessThan(20)
  })

  test('calls to an upstream that takes a second: served in a steady stream, not by turns of flood and drought', () => {
    const { began, refused, served } = run({ ...CALL, perMs: () => 3.6, forMs: 30_000, upstreamMs: 1_000 })
    expect(served).toBeGreaterThan(0.7 * 30_000 * (1 - 3.6 * 0.06))
    expect(share(sentFrom(8_000, began), 0.99)).toBeLessThan(3_500)
    expect(share(sentFrom(8_000, refused), 0.5)).toBeLessThan(20)
    expect(share(sentFrom(8_000, refused), 0.99)).toBeLessThan(200)
  })

  test('calls that become four times as dear while they are under way: those that are too many are not made up for', () => {
    const partMs = (atMs: number): number => (atMs < 10_000 ? 0.72 : 3)
    const { refused } = run({ ...CALL, perMs: () => 3.6, forMs: 30_000, upstreamMs: 1_000, partMs })
    // Two and a half seconds of work are under way when it happens, and are not there to stay.
    expect(share(sentFrom(15_000, refused), 0.5)).toBeLessThan(1_000)
  })

  test('of streams that take all of the loop: whoever was let in begins in the end, though none of them ends', () => {
    const { began } = run({ ...CALL, ...burst(2_000), partMs: 0.1, parts: 300, paceMs: 100, upstreamMs: 500 })
    expect(began).toHaveLength(2_000)
    // Before any of them ends, after thirty seconds and more.
    expect(share(began, 1)).toBeLessThan(25_000)
  })

  test('seven tenths of what can be served are no storm', () => {
    for (const upstreamMs of [1, 1_000]) {
      const { began, refused } = run({ ...CALL, perMs: () => 0.7, forMs: 10_000, upstreamMs })
      expect(refused).toEqual([])
      expect(share(began, 0.99)).toBeLessThan(20)
    }
  })
})

describe('a call', () => {
  test('begins at once where nobody waits', () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, PLENTY)
    expect(overload.refusal(0, 1, 10)).toBeUndefined()
    expect(overload.begins()).toBe(true)
  })

  test('is refused where more are under way than there may be', () => {
    const overload = new Overload(new SimulatedLoop(), PLENTY)
    expect(overload.refusal(0, 3, 3)).toBeUndefined()
    expect(overload.refusal(0, 4, 3)).toMatchObject({ code: 'overloaded', retryAfter: 1 })
  })

  test('is refused where there is no memory for it, unless there are few', () => {
    const overload = new Overload(new SimulatedLoop(), { isHigh: () => true })
    expect(overload.refusal(0, 64, 8_000)).toBeUndefined()
    expect(overload.refusal(0, 65, 8_000)).toMatchObject({ code: 'overloaded', retryAfter: 1 })
  })

  test('whose caller left while it waited takes no place of those behind it', () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, PLENTY)
    while (overload.begins());
    let begunMs = 0
    for (let i = 0; i < 500; i++) {
      overload.wait({ sinceMs: loop.nowMs(), begin: () => i === 499 && (begunMs = loop.nowMs()) > 0 })
    }
    expect(overload.waiting).toBe(500)
    loop.run(overload, { ...CALL, perMs: () => 0, forMs: 1 })
    expect(begunMs).toBeGreaterThan(0)
    expect(begunMs).toBeLessThan(10)
    expect(overload.waiting).toBe(0)
  })

  test('that has waited for long begins in its turn, two hundred a second, not together with all others', () => {
    let nowMs = 0
    const callbacks: (() => void)[] = []
    const later = (callback: () => void): void => void callbacks.push(callback)
    const overload = new Overload(
      { nowMs: () => nowMs, idleMs: () => 0, afterInput: later, afterMs: (_, callback) => later(callback) },
      PLENTY,
    )
    const turn = (ms: number): void => {
      nowMs += ms
      for (const callback of callbacks.splice(0)) callback()
    }
    while (overload.begins());
    for (let i = 0; i < 1_000; i++) overload.wait({ sinceMs: 0, begin: () => true })
    turn(4_900)
    turn(50)
    expect(overload.waiting).toBe(1_000)
    turn(100)
    expect(overload.waiting).toBe(980)
  })

  test('is not refused for a pause of the whole machine', () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, PLENTY)
    loop.run(overload, { ...CALL, ...burst(200) })
    loop.stall(30_000)
    expect(loop.run(overload, { ...CALL, ...burst(2_000) }).refused).toEqual([])
  })
})
