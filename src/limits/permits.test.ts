import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { SharedWindow } from '../../test/equipment/shared-window.ts'
import { slotsOf } from './share-messages.ts'
import { Permits } from './permits.ts'

const ONE_MEMORY = 'm'
/** What may happen to one node at one moment. */
const step = fc.record({
  node: fc.nat(2),
  passMs: fc.integer({ min: 0, max: 400 }),
  calls: fc.integer({ min: 0, max: 12 }),
  wanting: fc.nat(4),
  // An exchange goes well, is heard without an answer, or is not heard at all; its way takes time.
  fate: fc.constantFrom('well', 'well', 'well', 'unanswered', 'unheard'),
  wayMs: fc.integer({ min: 0, max: 30 }),
})
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never

interface Outcome {
  readonly through: readonly number[]
}

/** Plays the steps on three nodes, each with a clock that began at another time. */
function play(steps: readonly Step[], most: number, windowMs: number): Outcome {
  const shared = new SharedWindow()
  const nodes = [0, 5_000_000, 77].map((aheadMs) => ({ aheadMs, permits: new Permits(most, windowMs) }))
  const through: number[] = []
  // It counts time from somewhere else, too.
  let nowMs = 1_000
  const SERVER_AHEAD_MS = 1_800_000_000_000
  for (const { node, passMs, calls, wanting, fate, wayMs } of steps) {
    nowMs += passMs
    const { permits, aheadMs } = nodes[node] ?? nodes[0]!
    const call = (): boolean => {
      const isThrough = permits.take(nowMs + aheadMs)?.allowed ?? false
      if (isThrough) through.push(nowMs)
      return isThrough
    }
    for (let i = 0; i < calls; i++) call()
    const question = permits.buildRequest(nowMs + aheadMs, wanting, ONE_MEMORY)
    // While it is under way others call.
    for (let i = 0; i < calls; i++) call()
    nowMs += wayMs
    const answer =
      fate === 'unheard' ? undefined : shared.exchange(nowMs + SERVER_AHEAD_MS, question, nodes.length)
    nowMs += wayMs
    if (fate === 'well' && answer) permits.applyResponse(nowMs + aheadMs, question, answer)
    else permits.failRequest()
    for (let i = 0; i < wanting; i++) call()
  }
  return { through }
}

function mostWithin(through: readonly number[], windowMs: number): number {
  return Math.max(0, ...through.map((end) => through.filter((at) => at > end - windowMs && at <= end).length))
}

describe('permits of several nodes', () => {
  test('never let more through together in any stretch of a window, whatever is lost and late', () => {
    fc.assert(
      fc.property(
        fc.array(step, { minLength: 1, maxLength: 60 }),
        fc.integer({ min: 1, max: 60 }),
        fc.integer({ min: 50, max: 3_000 }),
        (steps, most, windowMs) => {
          const { through } = play(steps, most, windowMs)
          expect(mostWithin(through, windowMs)).toBeLessThanOrEqual(most)
        },
      ),
      { numRuns: 300 },
    )
  })

  test('let through all but a hundredth of it where nothing is lost, also if one node has most of the calls', () => {
    const windowMs = 10_000
    const most = 400
    const steps = Array.from({ length: 20_000 }, (_, i): Step => {
      const node = i % 20 < 18 ? 0 : (i % 20) - 17
      return { node, passMs: 2, calls: 0, wanting: 1, fate: 'well', wayMs: 0 }
    })
    const { through } = play(steps, most, windowMs)
    const whole = through.filter((at) => at > 11_000 && at <= 41_000)
    expect(whole.length).toBeGreaterThanOrEqual(0.985 * 3 * most)
    expect(mostWithin(through, windowMs)).toBeLessThanOrEqual(most)
  })
})

describe('permits at hand', () => {
  /** Five of them, asked for at 0; the server's clock said 800,000 then. */
  function atHand(): { permits: Permits; shared: SharedWindow; untilMs: number } {
    const shared = new SharedWindow()
    const permits = new Permits(90, 1000)
    const question = permits.buildRequest(0, 5, ONE_MEMORY)
    const answer = shared.exchange(800_000, question, 3)
    // It was long on its way back.
    permits.applyResponse(100, question, answer)
    return { permits, shared, untilMs: answer.slot * slotsOf(1000).widthMs - 800_000 }
  }

  test('are good until the moment that they are counted at, as if the answer had come at once', () => {
    const { permits, untilMs } = atHand()
    expect(permits.take(untilMs - 1)?.allowed).toBe(true)
    expect(permits.take(untilMs)).toBeUndefined()
  })

  test('are good no more where a question about them was not answered', () => {
    const { permits } = atHand()
    expect(permits.take(101)?.allowed).toBe(true)
    permits.buildRequest(102, 0, ONE_MEMORY)
    expect(permits.take(103)?.allowed).toBe(true)
    permits.failRequest()
    expect(permits.take(104)).toBeUndefined()
    expect(permits.buildRequest(105, 0, ONE_MEMORY)).toMatchObject({ used: 0, back: 0, kept: 0 })
  })
})

describe('a node that cannot hear the others', () => {
  const ask = (permits: Permits, shared: SharedWindow, nowMs: number, need: number): void => {
    const question = permits.buildRequest(nowMs, need, ONE_MEMORY)
    permits.applyResponse(nowMs, question, shared.exchange(nowMs, question, 3))
  }
  const times = (n: number, take: () => boolean): number =>
    Array.from({ length: n }, take).filter(Boolean).length

  test('has its share, never nothing and never all', () => {
    for (const [most, share] of [
      [90, 30],
      [10, 3],
      [2, 1],
    ] as const) {
      const permits = new Permits(most, 1000)
      expect(times(100, () => permits.takeIsolated(0, 3).allowed)).toBe(share)
      expect(permits.takeIsolated(999, 3).allowed).toBe(false)
      expect(permits.takeIsolated(1000, 3).allowed).toBe(true)
    }
  })

  test('has its share of what was left when it heard of them last, and of what leaves the window since', () => {
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

  test('says when it is worth asking again', () => {
    const permits = new Permits(3, 1000)
    permits.takeIsolated(0, 3)
    expect(permits.takeIsolated(400, 3)).toMatchObject({ allowed: false, waitMs: 600 })
  })

  test('tells what it let through as soon as it can', () => {
    const shared = new SharedWindow()
    const permits = new Permits(90, 1000)
    times(30, () => permits.takeIsolated(0, 3).allowed)
    const question = permits.buildRequest(10, 0, ONE_MEMORY)
    expect(question.added).toEqual([[10, 30]])
    permits.failRequest()
    expect(permits.buildRequest(20, 0, ONE_MEMORY).added).toEqual([[20, 30]])
    permits.failRequest()
    ask(permits, shared, 30, 0)
    expect(permits.buildRequest(40, 0, ONE_MEMORY).added).toEqual([])
  })
})

describe('a common memory that is lost', () => {
  test('is told again what this node let through, and nothing that was told before counts', () => {
    const lost = new SharedWindow()
    const permits = new Permits(90, 1000)
    const question = permits.buildRequest(0, 40, 'before')
    permits.applyResponse(0, question, lost.exchange(0, question, 3))
    for (let i = 0; i < 40; i++) permits.take(1)
    expect(permits.buildRequest(2, 0, 'after')).toMatchObject({ used: 0, kept: 0, back: 0, added: [[1, 40]] })
  })
})

test('whatever it is told, a node lets no more through than the limit', () => {
  const permits = new Permits(10, 1000)
  let through = 0
  for (let i = 0; i < 100; i++) {
    const question = permits.buildRequest(i, 5, ONE_MEMORY)
    permits.applyResponse(i, question, { nowMs: i, granted: 5, slot: 100, amounts: [] })
    for (let j = 0; j < 5; j++) if (permits.take(i)?.allowed) through += 1
  }
  expect(through).toBe(10)
})
