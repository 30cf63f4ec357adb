import { describe, expect, test } from 'vitest'
import { type Outcome, SimulatedLoop, type Traffic, type Wait } from '../../test/fixtures/simulated-loop.ts'
import { type MemoryFunctions, Overload } from './overload.ts'

const ENOUGH_MEMORY: MemoryFunctions = { isHigh: () => false, setOverload: () => {} }

/** Costs of a call, a millisecond in all; the capacity is a thousand calls a second. */
const CALL = { headMs: 0.03, refusalMs: 0.03, beginMs: 0.25, chunkMs: 0.72, upstreamMs: 1 }

function run(traffic: Traffic, slowdown = 1): Outcome {
  const loop = new SimulatedLoop(slowdown)
  return loop.run(new Overload(loop, ENOUGH_MEMORY), traffic)
}

/** Arrival of this number of calls within a tenth of a second. */
function burst(calls: number): Pick<Traffic, 'callsPerMs' | 'durationMs'> {
  return { callsPerMs: () => calls / 100, durationMs: 100 }
}

/** Quantile of the waits, in milliseconds; `quantile(waits, 1)` is the maximum. */
function quantile(waits: readonly Wait[], level: number): number {
  const sorted = waits.map(({ ms }) => ms).sort((one, other) => one - other)
  return sorted[Math.min(sorted.length - 1, Math.floor(level * sorted.length))] ?? 0
}

/** Waits of calls that were sent at `ms` or later. */
function sentFrom(ms: number, waits: readonly Wait[]): Wait[] {
  return waits.filter(({ sentMs }) => sentMs >= ms)
}

describe('a burst', () => {
  const kinds: readonly (readonly [string, Omit<Traffic, 'callsPerMs' | 'durationMs'>, number])[] = [
    ['calls', CALL, 1],
    ['calls on a machine that other programs use, too', CALL, 3],
    ['calls that cost six milliseconds each', { ...CALL, beginMs: 3, chunkMs: 3 }, 1],
    ['calls to a slow upstream', { ...CALL, upstreamMs: 1_000 }, 1],
    ['calls to a slow upstream on a slow machine', { ...CALL, upstreamMs: 3_000 }, 4],
    ['streams', { ...CALL, chunkMs: 0.02, chunks: 100, chunkIntervalMs: 100, upstreamMs: 500 }, 1],
    [
      'streams on a slow machine',
      { ...CALL, chunkMs: 0.02, chunks: 50, chunkIntervalMs: 200, upstreamMs: 500 },
      3,
    ],
  ]
  for (const calls of [400, 1_000, 2_000])
    test.each(kinds)(
      `a burst of ${calls} calls to an idle gateway is served without a refusal: %s`,
      (_, costs, slowdown) => {
        const { begun, refused, served } = run({ ...costs, ...burst(calls) }, slowdown)
        expect(refused).toEqual([])
        expect(begun).toHaveLength(calls)
        expect(served).toBe(calls)
      },
    )

  test('a burst of 2,000 calls is served without refusals right after an earlier burst has ended', () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, ENOUGH_MEMORY)
    for (let i = 0; i < 5; i++) expect(loop.run(overload, { ...CALL, ...burst(2_000) }).refused).toEqual([])
  })

  test('all calls of a burst of 400 to a slow upstream begin before the first response arrives', () => {
    const { begun } = run({ ...CALL, ...burst(400), upstreamMs: 5_000 })
    // The work takes a hundred milliseconds; the window grows by two calls per idle millisecond.
    expect(quantile(begun, 1)).toBeLessThan(1_000)
  })

  test('a burst of calls that does not end is refused in part, because waiting calls take memory', () => {
    const { refused } = run({ ...CALL, callsPerMs: () => 40, durationMs: 200 })
    expect(refused.length).toBeGreaterThan(5_000)
  })
})

describe('sustained overload at twice the capacity', () => {
  const storm = { ...CALL, callsPerMs: () => 2, durationMs: 20_000 }

  test("at twice the gateway's capacity about half of the calls are refused, and the event loop is hardly idle", () => {
    const { begun, refused, endMs } = run(storm)
    expect(refused.length / 40_000).toBeGreaterThan(0.45)
    expect(refused.length / 40_000).toBeLessThan(0.6)
    // Sum of the work on served and on refused calls.
    expect(begun.length + refused.length * 0.06).toBeGreaterThan(0.9 * endMs)
  })

  test('under sustained overload admitted calls wait about two seconds at most, and refused calls are answered at once', () => {
    const { begun, refused } = run(storm)
    expect(quantile(begun, 0.99)).toBeLessThan(2_500)
    expect(quantile(sentFrom(3_000, refused), 0.99)).toBeLessThan(20)
    expect(quantile(refused, 1)).toBeLessThan(100)
  })

  test('the memory supervision is notified when sustained overload begins and ends, but not of a short burst of calls', () => {
    const told: [isOverload: boolean, ms: number][] = []
    const loop = new SimulatedLoop()
    const memory = { isHigh: () => false, setOverload: (is: boolean) => void told.push([is, loop.nowMs()]) }
    const overload = new Overload(loop, memory)
    loop.run(overload, { ...CALL, ...burst(2_000) })
    expect(told).toEqual([])
    const startMs = loop.nowMs()
    loop.run(overload, { ...storm, callsPerMs: (ms) => (ms < 10_000 ? 2 : 0.5) })
    expect(told.map(([is]) => is)).toEqual([true, false])
    expect(told[0]?.[1]).toBeLessThan(startMs + 6_000)
    expect(told[1]?.[1]).toBeGreaterThan(startMs + 10_000)
  })

  test("once the load is below the gateway's capacity again, all calls are admitted and begin within five milliseconds", () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, ENOUGH_MEMORY)
    const { refused } = loop.run(overload, { ...storm, callsPerMs: (ms) => (ms < 10_000 ? 2 : 0.5) })
    expect(sentFrom(10_100, refused)).toEqual([])
    const { begun } = loop.run(overload, { ...storm, callsPerMs: () => 0.5, durationMs: 5_000 })
    expect(quantile(begun, 1)).toBeLessThan(5)
  })

  test('under overload calls are admitted in proportion to the CPU time that other programs leave to the gateway', () => {
    const { begun, refused } = run({ ...storm, callsPerMs: () => 1 }, 2)
    expect(refused.length / 20_000).toBeGreaterThan(0.4)
    expect(refused.length / 20_000).toBeLessThan(0.6)
    // The first calls count as a burst.
    expect(quantile(sentFrom(10_000, begun), 0.99)).toBeLessThan(3_000)
  })
})

describe('other kinds of sustained overload', () => {
  test("at five times the gateway's capacity at least 90 % of the time that refusals leave is spent on serving calls", () => {
    const { begun, refused, endMs } = run({ ...CALL, callsPerMs: () => 5, durationMs: 20_000 })
    expect(begun.length).toBeGreaterThan(0.9 * (endMs - refused.length * 0.06))
    expect(quantile(sentFrom(3_000, refused), 0.99)).toBeLessThan(20)
  })

  test('under overload, calls to an upstream that takes a second are served at a steady rate, without oscillation', () => {
    const { begun, refused, served } = run({
      ...CALL,
      callsPerMs: () => 3.6,
      durationMs: 30_000,
      upstreamMs: 1_000,
    })
    expect(served).toBeGreaterThan(0.7 * 30_000 * (1 - 3.6 * 0.06))
    expect(quantile(sentFrom(8_000, begun), 0.99)).toBeLessThan(3_500)
    expect(quantile(sentFrom(8_000, refused), 0.5)).toBeLessThan(20)
    expect(quantile(sentFrom(8_000, refused), 0.99)).toBeLessThan(200)
  })

  test.each([1.3, 1.8])(
    "calls that take %d ms of CPU time and a second at the upstream use four fifths of the gateway's capacity",
    (callMs) => {
      const { begun, refused, served } = run({
        ...CALL,
        chunkMs: callMs - CALL.beginMs,
        callsPerMs: () => 2.8,
        durationMs: 30_000,
        upstreamMs: 1_000,
      })
      expect(served).toBeGreaterThan((0.8 * 30_000 * (1 - 2.8 * 0.06)) / callMs)
      expect(quantile(sentFrom(8_000, begun), 0.5)).toBeLessThan(2_100)
      expect(quantile(sentFrom(8_000, refused), 0.5)).toBeLessThan(10)
    },
  )

  test('the gateway clears its backlog after the CPU cost of the calls in flight has quadrupled', () => {
    const chunkMs = (atMs: number): number => (atMs < 10_000 ? 0.72 : 3)
    const { refused } = run({
      ...CALL,
      callsPerMs: () => 3.6,
      durationMs: 30_000,
      upstreamMs: 1_000,
      chunkMs,
    })
    // The backlog at that moment is two and a half seconds of work, which is then processed.
    expect(quantile(sentFrom(15_000, refused), 0.5)).toBeLessThan(1_000)
  })

  test('of 2,000 streams that use all CPU time, every call begins before any stream ends', () => {
    const { begun } = run({
      ...CALL,
      ...burst(2_000),
      chunkMs: 0.1,
      chunks: 300,
      chunkIntervalMs: 100,
      upstreamMs: 500,
    })
    expect(begun).toHaveLength(2_000)
    // The first stream ends after thirty seconds or more.
    expect(quantile(begun, 1)).toBeLessThan(25_000)
  })

  test("at 70 % of the gateway's capacity no call is refused, and 99 % of the calls begin within 20 ms", () => {
    for (const upstreamMs of [1, 1_000]) {
      const { begun, refused } = run({ ...CALL, callsPerMs: () => 0.7, durationMs: 10_000, upstreamMs })
      expect(refused).toEqual([])
      expect(quantile(begun, 0.99)).toBeLessThan(20)
    }
  })
})

describe('a call', () => {
  test('a call begins at once if the gateway is idle and no other call waits', () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, ENOUGH_MEMORY)
    expect(overload.refusal(0, 1, 10)).toBeUndefined()
    expect(overload.tryBegin()).toBe(true)
  })

  test('a call is refused if the maximum number of open calls is reached', () => {
    const overload = new Overload(new SimulatedLoop(), ENOUGH_MEMORY)
    expect(overload.refusal(0, 3, 3)).toBeUndefined()
    expect(overload.refusal(0, 4, 3)).toMatchObject({ code: 'overloaded', retryAfter: 1 })
  })

  test('a call is refused when memory usage is high, unless few calls are open', () => {
    const overload = new Overload(new SimulatedLoop(), { isHigh: () => true, setOverload: () => {} })
    expect(overload.refusal(0, 64, 8_000)).toBeUndefined()
    expect(overload.refusal(0, 65, 8_000)).toMatchObject({ code: 'overloaded', retryAfter: 1 })
  })

  test('a queued call whose client has disconnected does not delay the calls behind it', () => {
    const begunMs = (disconnected: number): number => {
      const loop = new SimulatedLoop()
      const overload = new Overload(loop, ENOUGH_MEMORY)
      while (overload.tryBegin());
      for (let i = 0; i < disconnected; i++) overload.enqueue({ arrivedMs: 0, begin: () => false })
      let ms = 0
      overload.enqueue({ arrivedMs: 0, begin: () => (ms = loop.nowMs()) > 0 })
      expect(overload.waiting).toBe(disconnected + 1)
      loop.run(overload, { ...CALL, callsPerMs: () => 0, durationMs: 1 })
      expect(overload.waiting).toBe(0)
      return ms
    }
    expect(begunMs(0)).toBeGreaterThan(0)
    expect(begunMs(500)).toBe(begunMs(0))
  })

  test('overdue queued calls begin in turn, two hundred a second, not all together', () => {
    let nowMs = 0
    const callbacks: (() => void)[] = []
    const later = (callback: () => void): void => void callbacks.push(callback)
    const overload = new Overload(
      { nowMs: () => nowMs, idleMs: () => 0, afterInput: later, afterMs: (_, callback) => later(callback) },
      ENOUGH_MEMORY,
    )
    const turn = (ms: number): void => {
      nowMs += ms
      for (const callback of callbacks.splice(0)) callback()
    }
    while (overload.tryBegin());
    for (let i = 0; i < 1_000; i++) overload.enqueue({ arrivedMs: 0, begin: () => true })
    turn(4_900)
    turn(50)
    expect(overload.waiting).toBe(1_000)
    turn(100)
    expect(overload.waiting).toBe(980)
  })

  test('no call is refused after the whole machine paused for 30 seconds', () => {
    const loop = new SimulatedLoop()
    const overload = new Overload(loop, ENOUGH_MEMORY)
    loop.run(overload, { ...CALL, ...burst(200) })
    loop.stall(30_000)
    expect(loop.run(overload, { ...CALL, ...burst(2_000) }).refused).toEqual([])
  })
})

test('on an event loop without idle time as many cheap calls are in flight as take twelve milliseconds of work', () => {
  let nowMs = 0
  let serve = (): void => {}
  const overload = new Overload(
    {
      nowMs: () => nowMs,
      idleMs: () => 0,
      afterInput: (callback) => (serve = callback),
      afterMs: () => {},
    },
    ENOUGH_MEMORY,
  )
  let underWay = 0
  const begin = (): boolean => (underWay += 1) > 0
  while (overload.tryBegin()) begin()
  expect(underWay).toBe(16)
  for (let i = 0; i < 1_000; i++) overload.enqueue({ arrivedMs: 0, begin })
  serve()
  // Each turn of 0.8 ms ends eight calls, so each took a tenth of a millisecond.
  for (let turn = 0; turn < 50; turn++) {
    nowMs += 0.8
    for (let i = 0; i < 8; i++) {
      underWay -= 1
      overload.callEnded()
    }
    serve()
  }
  expect(underWay).toBeGreaterThan(60)
  expect(underWay).toBeLessThanOrEqual(240)
})
