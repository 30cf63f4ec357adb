import { beforeEach, describe, expect, test } from 'vitest'
import { Overload } from './overload.ts'

const MOST = 5_000

let overload: Overload
let [nowMs, workedMs, idleMs, open] = [0, 0, 0, 0]
beforeEach(() => {
  ;[nowMs, workedMs, idleMs, open] = [0, 0, 0, 0]
  overload = new Overload({ nowMs: () => nowMs, workedMs: () => workedMs, idleMs: () => idleMs })
})

/** A turn of the event loop takes so long, at work all the time or not, and ends with a look. */
function turn(ms: number, working = true): void {
  pass(ms, working)
  overload.look()
}

function pass(ms: number, working = true): void {
  nowMs += ms
  if (working) workedMs += ms
}

/** The loop has nothing to do for so long. */
function rest(ms: number): void {
  nowMs += ms
  idleMs += ms
}

/** Lets calls arrive now; returns how many were admitted. They stay. */
function letIn(calls: number): number {
  const before = open
  for (let i = 0; i < calls; i++) if (!overload.refusal(open + 1, MOST)) open += 1
  return open - before
}

/** A crowd that the loop has no time for. */
function crowd(): void {
  for (let i = 0; i < 4; i++) {
    letIn(100)
    turn(150)
  }
}

describe('overload', () => {
  test('refuses nobody while the event loop is in time', () => {
    for (let i = 0; i < 50; i++) {
      expect(letIn(50)).toBe(50)
      turn(60)
    }
  })

  test('is not what one long moment makes', () => {
    letIn(500)
    turn(50)
    turn(3_000)
    expect(letIn(60)).toBe(60)
    turn(55)
    expect(letIn(500)).toBe(500)
  })

  test('is not what one moment of many calls makes', () => {
    letIn(500)
    pass(145)
    expect(letIn(500)).toBe(500)
    overload.look()
    turn(55)
    expect(letIn(500)).toBe(500)
  })

  test('is not what makes a gateway late that has little to do', () => {
    for (let i = 0; i < 50; i++) {
      turn(500)
      expect(letIn(60)).toBe(60)
      open -= 60
    }
  })

  test('is not what a machine makes that gives it no time', () => {
    for (let i = 0; i < 20; i++) {
      turn(500, false)
      expect(letIn(50)).toBe(50)
    }
  })

  test('is seen in the middle of a turn that does not end', () => {
    turn(50)
    let refused = false
    for (let i = 0; i < 100 && !refused; i++) {
      refused = letIn(10) < 10
      pass(10)
    }
    expect(refused).toBe(true)
    expect(nowMs).toBeLessThan(400)
  })

  test('lets in fewer and fewer while it is late, but some whatever happens', () => {
    crowd()
    expect(letIn(100)).toBe(0)
    for (let i = 0; i < 50; i++) {
      open = 0
      letIn(100)
      turn(200)
    }
    expect(open).toBe(8)
  })

  test('lets in as many as there is time for once turns are short, and everybody when nobody was refused for a second', () => {
    crowd()
    open = 0
    let before = 0
    for (let i = 0; i < 10; i++) {
      before = open
      letIn(1_000)
      turn(6)
    }
    expect(open).toBeGreaterThan(before)
    open = 0
    for (let i = 0; i < 180; i++) turn(6)
    expect(letIn(2_000)).toBe(2_000)
  })

  test('is over when nobody was refused for a second, though there is much to do', () => {
    crowd()
    open = 0
    for (let i = 0; i < 60; i++) turn(20)
    expect(letIn(2_000)).toBe(2_000)
  })

  test('lets bursts in again that there is time for', () => {
    crowd()
    let last = 0
    for (let i = 0; i < 20; i++) {
      open = 0
      last = letIn(100)
      turn(40)
      for (let look = 0; look < 20; look++) turn(5)
    }
    expect(last).toBe(100)
  })

  test('keeps waits short in a storm, and is over while calls still come that there is time for', () => {
    for (const [stepMs, lastsMs] of [
      [0.5, 30],
      [0.5, 1_000],
      [2.5, 1_000],
    ] as const)
      for (const load of [0.3, 0.5, 0.7]) {
        // Each call takes two steps.
        const most = 1 / (2 * stepMs)
        live(5 * most, { ms: 4_000, stepMs, lastsMs })
        const storm = live(5 * most, { ms: 4_000, stepMs, lastsMs })
        expect(storm.refused).toBeGreaterThan(8_000 * most)
        expect(storm.served).toBeGreaterThan(4_000 * most * (lastsMs < 100 ? 0.8 : 0.3))
        expect(storm.waitedMs).toBeLessThan(20 * stepMs + 40)
        live(load * most, { ms: 6_000, stepMs, lastsMs })
        expect(live(load * most, { ms: 3_000, stepMs, lastsMs }).refused).toBe(0)
      }
  })

  /**
   * A loop to which so many calls come in a millisecond, each with a step of work when it comes and when it
   * ends. Those refused and served, and how long the longest step waited.
   */
  function live(
    perMs: number,
    plan: { ms: number; stepMs: number; lastsMs: number },
  ): { refused: number; served: number; waitedMs: number } {
    const endMs = nowMs + plan.ms
    const ends: number[] = []
    let [comesMs, lookMs, refused, served, waitedMs] = [nowMs, nowMs, 0, 0, 0]
    while (nowMs < endMs) {
      if (nowMs >= lookMs) {
        overload.look()
        lookMs = nowMs + 5
      }
      const turnMs = nowMs
      let steps = 0
      for (; (ends[0] ?? Number.POSITIVE_INFINITY) <= turnMs; steps++) {
        waitedMs = Math.max(waitedMs, nowMs - (ends.shift() ?? nowMs))
        open -= 1
        served += 1
        pass(plan.stepMs)
      }
      for (; comesMs <= turnMs; steps++) {
        // Uneven, and the same each time.
        comesMs += (0.5 + ((comesMs * 7_919) % 1)) / perMs
        if (overload.refusal(open + 1, MOST)) {
          refused += 1
          pass(0.035)
        } else {
          open += 1
          pass(plan.stepMs)
          ends.push(nowMs + plan.lastsMs)
        }
      }
      if (steps === 0) rest(Math.max(0.01, Math.min(comesMs, ends[0] ?? comesMs, lookMs) - nowMs))
    }
    open -= ends.length
    return { refused, served, waitedMs }
  }

  test('takes no more away while what was taken has yet to show', () => {
    crowd()
    const before = open
    for (let i = 0; i < 50; i++) turn(200)
    open = before / 2
    expect(letIn(100)).toBe(0)
    open = before / 4 - 20
    expect(letIn(100)).toBeGreaterThan(0)
  })

  test('finds time for all that are under way where there is', () => {
    crowd()
    open = 1_000
    letIn(1)
    for (let i = 0; i < 60; i++) turn(5)
    open = 950
    expect(letIn(100)).toBeGreaterThan(30)
  })

  test('does not find it at one look', () => {
    crowd()
    open = 1_000
    letIn(1)
    turn(5)
    open = 500
    expect(letIn(100)).toBe(0)
  })

  /** As many as may be are under way, and there is time for them. */
  function full(): void {
    crowd()
    for (let i = 0; i < 60; i++) {
      letIn(100)
      turn(5)
    }
    letIn(100)
  }

  test('goes down by what ended: calls that last bring little when one goes', () => {
    full()
    turn(60)
    open -= 10
    // Nothing had ended: one fewer.
    expect(letIn(100)).toBe(9)
    turn(60)
    open -= 10
    // Ten had: five fewer.
    expect(letIn(100)).toBe(5)
  })

  test('takes a look that is three milliseconds late for late, but not what the machine took', () => {
    full()
    turn(5)
    turn(8)
    expect(letIn(100)).toBe(0)
    turn(60, false)
    expect(letIn(100)).toBe(0)
    turn(60, false)
    expect(letIn(100)).toBe(1)
  })

  test('takes no look for late where the loop is idle for a seventh of the time', () => {
    /** Looks that are three milliseconds late, on a loop that is idle for so much of the time. */
    function looks(idle: number): number {
      full()
      for (let i = 0; i < 100; i++) {
        rest(8 * idle)
        turn(8 * (1 - idle))
      }
      open = 0
      return letIn(5_000)
    }
    const busy = looks(0.1)
    expect(looks(0.2)).toBeGreaterThan(busy + 100)
  })

  test('allows 40 millionths of a second for each that was refused, no more', () => {
    full()
    turn(5)
    expect(letIn(100)).toBe(1)
    turn(5 + 1 + 0.04 * 99 - 0.1)
    expect(letIn(100)).toBe(1)
    turn(5 + 1 + 0.04 * 99 + 0.5)
    expect(letIn(100)).toBe(0)
  })

  test('takes a fifth away at the most', () => {
    full()
    const before = open
    open = 0
    expect(letIn(1_000)).toBe(before)
    turn(60)
    open = 0
    expect(letIn(1_000)).toBe(Math.floor(before * 0.8))
  })

  test('lasts until nobody was refused for a second', () => {
    full()
    open = 0
    for (let i = 0; i < 200; i++) turn(5)
    expect(letIn(5_000)).toBeLessThan(5_000)
    open = 0
    for (let i = 0; i < 202; i++) turn(5)
    expect(letIn(5_000)).toBe(5_000)
  })

  test('looks at those that are under way, whether one was refused or not', () => {
    full()
    open -= 60
    expect(letIn(10)).toBe(10)
    turn(60)
    expect(letIn(100)).toBe(0)
  })

  test('is there for as long as somebody is refused', () => {
    crowd()
    for (let i = 0; i < 300; i++) {
      letIn(50)
      turn(5)
    }
    expect(open).toBeLessThan(1_500)
  })

  test('does not count what was before', () => {
    function letInOfACrowd(): number {
      for (let i = 0; i < 2; i++) {
        letIn(100)
        turn(150)
      }
      expect(letIn(1)).toBe(0)
      turn(5)
      open = 0
      return letIn(5_000)
    }
    const first = letInOfACrowd()
    for (let i = 0; i < 500; i++) {
      open = 3_000
      letIn(400)
      turn(5)
    }
    open = 0
    for (let i = 0; i < 100; i++) {
      letIn(100)
      open = 0
      turn(50)
    }
    expect(letInOfACrowd()).toBe(first)
  })

  test('goes up by what ended, and by one at the least', () => {
    full()
    turn(5)
    expect(letIn(100)).toBe(1)
    turn(5)
    letIn(100)
    open -= 40
    expect(letIn(1_000)).toBe(40)
    turn(5)
    expect(letIn(1_000)).toBe(4)
  })

  test('does not take the time that refusing takes for time that those let in take', () => {
    crowd()
    open = 0
    const before = letIn(1_000)
    // Forty millionths of a second each.
    turn(5 + 0.04 * 970)
    open = 0
    expect(letIn(1_000)).toBeGreaterThan(before)
  })

  test('says when to come back', () => {
    crowd()
    expect(overload.refusal(1_000, MOST)).toMatchObject({ code: 'overloaded', retryAfter: 1 })
  })

  test('refuses what would be more than may be under way', () => {
    expect(overload.refusal(3, 3)).toBeUndefined()
    expect(overload.refusal(4, 3)).toMatchObject({ code: 'overloaded', retryAfter: 1 })
  })
})
