import { beforeEach, describe, expect, test } from 'vitest'
import { Overload } from './overload.ts'

const MOST = 5_000

let overload: Overload
let [nowMs, workedMs, open] = [0, 0, 0]
beforeEach(() => {
  ;[nowMs, workedMs, open] = [0, 0, 0]
  overload = new Overload({ nowMs: () => nowMs, workedMs: () => workedMs })
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

/** Of so many calls that come now, those that are let in; they stay. */
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
    expect(open).toBe(32)
  })

  test('lets in as many as there is time for once turns are short, and everybody when nobody was refused for a second', () => {
    crowd()
    open = 0
    let before = 0
    for (let i = 0; i < 10; i++) {
      before = open
      letIn(1_000)
      turn(10)
    }
    expect(open).toBeGreaterThan(before)
    open = 0
    for (let i = 0; i < 110; i++) turn(10)
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
