import { describe, expect, test } from 'vitest'
import { ReadPauses } from './read-pauses.ts'
import { MAX_TURN_MS, TurnBudget } from '../limits/event-loop.ts'

class FakeUpstream {
  isRead = true

  pause(): void {
    this.isRead = false
  }

  resume(): void {
    this.isRead = true
  }
}

test('a paused upstream response is read again when the last reason for the pause is gone', () => {
  const upstream = new FakeUpstream()
  const pauses = new ReadPauses(upstream)
  pauses.begin('hold')
  pauses.begin('client')
  pauses.end('hold')
  expect([upstream.isRead, pauses.has('hold'), pauses.has('client')]).toEqual([false, false, true])
  pauses.end('client')
  expect(upstream.isRead).toBe(true)
})

test('removing the last reason for a pause resumes reading from the upstream only when the pauses are next applied', () => {
  const upstream = new FakeUpstream()
  const pauses = new ReadPauses(upstream)
  pauses.begin('count')
  pauses.remove('count')
  expect([upstream.isRead, pauses.has('count')]).toEqual([false, false])
  pauses.apply()
  expect(upstream.isRead).toBe(true)
})

test('pauses for a tenth of the time are long if the client reads slowly or memory is short, and not for other reasons', () => {
  let nowMs = 1_000
  const pauses = new ReadPauses(new FakeUpstream(), undefined, () => nowMs)
  pauses.begin('count')
  nowMs += 800
  pauses.end('count')
  expect(pauses.areLong).toBe(false)
  pauses.begin('client')
  nowMs += 50
  pauses.begin('memory')
  pauses.end('client')
  expect(pauses.areLong).toBe(false)
  nowMs += 100
  expect(pauses.areLong).toBe(true)
  pauses.end('memory')
  expect(pauses.areLong).toBe(true)
  nowMs += 1_000
  expect(pauses.areLong).toBe(false)
})

test('the rest of an upstream response that is discarded is read in spite of all reasons for a pause', () => {
  const upstream = new FakeUpstream()
  const pauses = new ReadPauses(upstream)
  pauses.begin('hold')
  pauses.discardRest()
  expect(upstream.isRead).toBe(true)
  pauses.begin('client')
  expect([upstream.isRead, pauses.has('client')]).toEqual([true, true])
})

test('an upstream response whose chunks take long to process is read again in the next turn of the event loop', async () => {
  const upstream = new FakeUpstream()
  const pauses = new ReadPauses(upstream)
  pauses.noteWork(3)
  expect(upstream.isRead).toBe(true)
  pauses.noteWork(3)
  expect(upstream.isRead).toBe(false)
  await new Promise((resolve) => setImmediate(resolve))
  expect(upstream.isRead).toBe(true)
  pauses.noteWork(3)
  expect(upstream.isRead).toBe(true)
})

describe('several large responses', () => {
  const CHUNK_MS = 1

  /** Simulates Node's reads: in each turn it reads every upstream that is not paused, in the same order. */
  function turnsOf(responses: number, turns: number): { work: number[]; worked: number[] } {
    const afterTurn: (() => void)[] = []
    const shared = new TurnBudget((callback) => afterTurn.push(callback))
    const all = Array.from({ length: responses }, () => {
      const upstream = new FakeUpstream()
      return { upstream, pauses: new ReadPauses(upstream, shared), worked: 0 }
    })
    const work = Array.from({ length: turns }, () => {
      let inTurn = 0
      for (const one of all)
        for (let chunks = 32; chunks > 0 && one.upstream.isRead; chunks--) {
          one.pauses.noteWork(CHUNK_MS)
          one.worked += CHUNK_MS
          inTurn += CHUNK_MS
        }
      for (const callback of afterTurn.splice(0)) callback()
      return inTurn
    })
    return { work, worked: all.map(({ worked }) => worked) }
  }

  test.each([4, 40])(
    '%i large responses together take no more time of an event loop turn than a single one',
    (responses) => {
      const { work } = turnsOf(responses, 3 * responses)
      // The first turn only finds out which responses are large.
      expect(Math.max(...work.slice(1))).toBe(MAX_TURN_MS)
    },
  )

  test("several large responses get equal shares of the event loop's time", () => {
    const { worked } = turnsOf(4, 400)
    expect(Math.max(...worked) - Math.min(...worked)).toBeLessThanOrEqual(MAX_TURN_MS)
  })
})

test('a small upstream response is still read when the time of an event loop turn for large responses is used up', () => {
  const upstream = new FakeUpstream()
  const shared = new TurnBudget(() => {})
  shared.note(10 * MAX_TURN_MS)
  new ReadPauses(upstream, shared).noteWork(1)
  expect(upstream.isRead).toBe(true)
})
