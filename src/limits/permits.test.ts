import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SharedWindow } from '../../test/fixtures/shared-window.ts'
import { bucketsOf } from './peers.ts'
import { Permits } from './permits.ts'
import { lawRuns } from '../../test/runner/tier.ts'

const GENERATION = 'm'
/** One step of one node. */
const step = fc.record({
  node: fc.nat(2),
  passMs: fc.integer({ min: 0, max: 400 }),
  calls: fc.integer({ min: 0, max: 12 }),
  wanting: fc.nat(4),
  // An exchange succeeds, is applied without a response, or is not applied at all; each direction takes
  // `wayMs`.
  outcome: fc.constantFrom('ok', 'ok', 'ok', 'no response', 'not applied'),
  wayMs: fc.integer({ min: 0, max: 30 }),
})
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

interface Outcome {
  readonly through: readonly number[]
}

/** Runs the steps on three nodes, whose clocks have different origins. */
function play(steps: readonly Step[], max: number, windowMs: number): Outcome {
  const shared = new SharedWindow()
  const nodes = [0, 5_000_000, 77].map((aheadMs) => ({ aheadMs, permits: new Permits(max, windowMs) }))
  const through: number[] = []
  // The server's clock has yet another origin.
  let nowMs = 1_000
  const SERVER_AHEAD_MS = 1_800_000_000_000
  for (const { node, passMs, calls, wanting, outcome, wayMs } of steps) {
    nowMs += passMs
    const { permits, aheadMs } = nodes[node] ?? nodes[0]!
    const call = (): boolean => {
      const isThrough = permits.take(nowMs + aheadMs)?.allowed ?? false
      if (isThrough) through.push(nowMs)
      return isThrough
    }
    for (let i = 0; i < calls; i++) call()
    const request = permits.buildRequest(nowMs + aheadMs, wanting, GENERATION)
    // Other calls arrive during the exchange.
    for (let i = 0; i < calls; i++) call()
    nowMs += wayMs
    const response =
      outcome === 'not applied' ? undefined : shared.exchange(nowMs + SERVER_AHEAD_MS, request, nodes.length)
    nowMs += wayMs
    if (outcome === 'ok' && response) permits.applyResponse(nowMs + aheadMs, request, response)
    else permits.failRequest()
    for (let i = 0; i < wanting; i++) call()
  }
  return { through }
}

function maxWithin(through: readonly number[], windowMs: number): number {
  return Math.max(0, ...through.map((end) => through.filter((at) => at > end - windowMs && at <= end).length))
}

describe('permits of several nodes', () => {
  test('several nodes together never exceed a rate limit in any window, whatever messages between them are lost or late', () => {
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 50, max: 3_000 }),
        (steps, max, windowMs) => {
          const { through } = play(steps, max, windowMs)
          expect(maxWithin(through, windowMs)).toBeLessThanOrEqual(max)
        },
      ),
      { numRuns: lawRuns(300) },
    )
  })

  test('several nodes together admit 98.5 % of a rate limit if no message is lost, even if one node has most calls', () => {
    const windowMs = 10_000
    const max = 400
    const steps = Array.from({ length: 20_000 }, (_, i): Step => {
      const node = i % 20 < 18 ? 0 : (i % 20) - 17
      return { node, passMs: 2, calls: 0, wanting: 1, outcome: 'ok', wayMs: 0 }
    })
    const { through } = play(steps, max, windowMs)
    const counted = through.filter((at) => at > 11_000 && at <= 41_000)
    expect(counted.length).toBeGreaterThanOrEqual(0.985 * 3 * max)
    expect(maxWithin(through, windowMs)).toBeLessThanOrEqual(max)
  })
})

describe('permits in stock', () => {
  /** Five permits, requested at time 0, when the server's clock showed 800,000. */
  function atHand(): { permits: Permits; shared: SharedWindow; untilMs: number } {
    const shared = new SharedWindow()
    const permits = new Permits(90, 1000)
    const request = permits.buildRequest(0, 5, GENERATION)
    const response = shared.exchange(800_000, request, 3)
    // The response arrives late.
    permits.applyResponse(100, request, response)
    return { permits, shared, untilMs: response.bucket * bucketsOf(1000).widthMs - 800_000 }
  }

  test('rate limit permits that a node holds in advance expire with the time bucket in which they count', () => {
    const { permits, untilMs } = atHand()
    expect(permits.take(untilMs - 1)?.allowed).toBe(true)
    expect(permits.take(untilMs)).toBeUndefined()
  })

  test('rate limit permits that a node holds in advance are void after its request for more got no response', () => {
    const { permits } = atHand()
    expect(permits.take(101)?.allowed).toBe(true)
    permits.buildRequest(102, 0, GENERATION)
    expect(permits.take(103)?.allowed).toBe(true)
    permits.failRequest()
    expect(permits.take(104)).toBeUndefined()
    expect(permits.buildRequest(105, 0, GENERATION)).toMatchObject({ used: 0, returned: 0, kept: 0 })
  })
})

describe('a node that cannot reach the others', () => {
  const ask = (permits: Permits, shared: SharedWindow, nowMs: number, need: number): void => {
    const request = permits.buildRequest(nowMs, need, GENERATION)
    permits.applyResponse(nowMs, request, shared.exchange(nowMs, request, 3))
  }
  const times = (n: number, take: () => boolean): number =>
    Array.from({ length: n }, take).filter(Boolean).length

  test('a node that cannot reach the other nodes may use its share of a rate limit, at least one call', () => {
    for (const [max, share] of [
      [90, 30],
      [10, 3],
      [2, 1],
    ] as const) {
      const permits = new Permits(max, 1000)
      expect(times(100, () => permits.takeIsolated(0, 3).allowed)).toBe(share)
      expect(permits.takeIsolated(999, 3).allowed).toBe(false)
      expect(permits.takeIsolated(1000, 3).allowed).toBe(true)
    }
  })

  test("a node that cannot reach other nodes may use its share of a rate limit's rest, and its full share once earlier calls expire", () => {
    const shared = new SharedWindow()
    const [one, other] = [new Permits(90, 1000), new Permits(90, 1000)]
    ask(one, shared, 0, 60)
    times(60, () => one.take(1)?.allowed ?? false)
    ask(other, shared, 1, 1)
    const left = times(90, () => other.takeIsolated(2, 3).allowed)
    expect(left).toBeGreaterThan(5)
    expect(left).toBeLessThanOrEqual(10)
    expect(times(90, () => other.takeIsolated(1500, 3).allowed)).toBe(30)
  })

  test('a node that cannot reach the other nodes states when a call that it refuses can be retried', () => {
    const permits = new Permits(3, 1000)
    permits.takeIsolated(0, 3)
    expect(permits.takeIsolated(400, 3)).toMatchObject({ allowed: false, waitMs: 600 })
  })

  test('a node reports the calls that it admitted without the other nodes as soon as it reaches them again', () => {
    const shared = new SharedWindow()
    const permits = new Permits(90, 1000)
    times(30, () => permits.takeIsolated(0, 3).allowed)
    const request = permits.buildRequest(10, 0, GENERATION)
    expect(request.added).toEqual([[10, 30]])
    permits.failRequest()
    expect(permits.buildRequest(20, 0, GENERATION).added).toEqual([[20, 30]])
    permits.failRequest()
    ask(permits, shared, 30, 0)
    expect(permits.buildRequest(40, 0, GENERATION).added).toEqual([])
  })

  /** A call every six seconds, of a hundred a minute: ten within the window. */
  const HOUR_OF_CALLS = Array.from({ length: 600 }, (_, index) => index * 6_000)
  const LAST_MS = HOUR_OF_CALLS.at(-1) ?? 0

  test('a node that reaches the others after an hour counts nothing that is older than the window', () => {
    const permits = new Permits(100, 60_000)
    for (const atMs of HOUR_OF_CALLS) expect(permits.takeIsolated(atMs, 2).allowed).toBe(true)
    expect(permits.peekIsolated(LAST_MS, 2, true)).toMatchObject({ allowed: true, remaining: 90 })
    expect(permits.peek(LAST_MS)).toMatchObject({ allowed: true, remaining: 90 })
  })

  test('what a node counts without the others costs as much after many windows as after one', () => {
    const permits = new Permits(1_000_000, 1_000)
    const fill = (fromMs: number, toMs: number): void => {
      for (let atMs = fromMs; atMs < toMs; atMs += 5) permits.takeIsolated(atMs, 1)
    }
    /** The shortest of several measurements, in milliseconds. */
    const costAt = (atMs: number): number =>
      Math.min(
        ...Array.from({ length: 5 }, () => {
          const began = performance.now()
          for (let i = 0; i < 500; i++) permits.peek(atMs)
          return performance.now() - began
        }),
      )
    fill(0, 1_000)
    costAt(1_000)
    const early = costAt(1_000)
    fill(1_000, 300_000)
    expect(costAt(300_000) / early).toBeLessThan(20)
  })

  test('a node forgets what it has counted without the others when the window is over', () => {
    const permits = new Permits(100, 60_000)
    for (const atMs of HOUR_OF_CALLS) permits.takeIsolated(atMs, 2)
    expect(permits.isIdle(LAST_MS + 59_999)).toBe(false)
    expect(permits.isIdle(LAST_MS + 60_000)).toBe(true)
    expect(permits.hasUnreported(LAST_MS + 60_000)).toBe(false)
  })

  test('a node whose reports fail goes on to admit its share, however long they fail', () => {
    const permits = new Permits(100, 60_000)
    for (const atMs of HOUR_OF_CALLS) {
      permits.buildRequest(atMs, 1, GENERATION)
      permits.failRequest()
      expect(permits.peek(atMs).allowed).toBe(true)
      expect(permits.takeIsolated(atMs, 2).allowed).toBe(true)
    }
    // The calls of the last minute.
    expect(permits.buildRequest(LAST_MS, 0, GENERATION).added).toHaveLength(10)
  })
})

describe('a shared store that has lost its data', () => {
  test('a node reports its admitted calls again to a shared store that has lost its data', () => {
    const lost = new SharedWindow()
    const permits = new Permits(90, 1000)
    const request = permits.buildRequest(0, 40, 'before')
    permits.applyResponse(0, request, lost.exchange(0, request, 3))
    for (let i = 0; i < 40; i++) permits.take(1)
    expect(permits.buildRequest(2, 0, 'after')).toMatchObject({
      used: 0,
      kept: 0,
      returned: 0,
      added: [[1, 40]],
    })
  })
})

test('a node never admits more calls than a rate limit allows, whatever responses the shared store sends', () => {
  const permits = new Permits(10, 1000)
  let through = 0
  for (let i = 0; i < 100; i++) {
    const request = permits.buildRequest(i, 5, GENERATION)
    permits.applyResponse(i, request, { nowMs: i, version: 0, granted: 5, bucket: 100, amounts: [] })
    for (let j = 0; j < 5; j++) if (permits.take(i)?.allowed) through += 1
  }
  expect(through).toBe(10)
})

describe('what nodes state of a limit that they share', () => {
  /** Two nodes that call by turns through a shared window, each `gapMs` after the other. */
  function turns(max: number, gapMs: number, calls: number) {
    const shared = new SharedWindow()
    const nodes = [new Permits(max, 60_000), new Permits(max, 60_000)]
    let nowMs = 1_000
    const exchange = (permits: Permits, need: number): void => {
      const request = permits.buildRequest(nowMs, need, GENERATION)
      permits.applyResponse(nowMs, request, shared.exchange(nowMs + 1e12, request, nodes.length))
    }
    return Array.from({ length: calls }, (_, index) => {
      nowMs += gapMs
      const permits = nodes[index % 2]!
      if (!permits.take(nowMs)) {
        exchange(permits, 1)
        permits.take(nowMs)
      }
      if (permits.isLow(nowMs) || permits.isDue(nowMs, GENERATION)) exchange(permits, 0)
      return permits.peek(nowMs)
    })
  }

  test.each([0.5, 5, 50, 500])(
    'what remains is right to within one when two nodes are called by turns, every %d ms',
    (gapMs) => {
      for (const [index, { remaining }] of turns(100, gapMs, 100).entries())
        expect(Math.abs(remaining - (100 - index - 1)), `after ${index + 1} calls`).toBeLessThanOrEqual(1)
    },
  )

  test('the whole limit is free again within the window, whatever permits the nodes hold', () => {
    for (const { resetMs } of turns(100, 5, 60)) expect(resetMs).toBeLessThanOrEqual(60_000)
  })

  test('a node that misses the others for a moment states what remains of the whole limit', () => {
    const permits = new Permits(100, 60_000)
    permits.takeIsolated(0, 2)
    expect(permits.peekIsolated(1, 2, true)).toMatchObject({ allowed: true, remaining: 99 })
    // Nodes that never count together state their share.
    expect(permits.peekIsolated(1, 2)).toMatchObject({ allowed: true, remaining: 49 })
  })

  test('a call after a limit was raised is admitted, though one was refused just before', () => {
    const shared = new SharedWindow()
    const permits = new Permits(1, 60_000)
    const ask = (nowMs: number): void => {
      const request = permits.buildRequest(nowMs, 1, GENERATION)
      permits.applyResponse(nowMs, request, shared.exchange(1e12 + nowMs, request, 2))
    }
    ask(0)
    expect(permits.take(0)).toMatchObject({ allowed: true })
    ask(1)
    expect(permits.take(2)).toMatchObject({ allowed: false })
    permits.max = 2
    expect(permits.take(3)).toBeUndefined()
    ask(3)
    expect(permits.take(3)).toMatchObject({ allowed: true })
  })
})
