import { describe, expect, test } from 'vitest'
import { LocalCounter } from './local-counter.ts'
import { ClientTable } from './client-table.ts'

class Seat {
  untilMs = Number.POSITIVE_INFINITY
  isIdle(nowMs: number): boolean {
    return nowMs >= this.untilMs
  }
}

describe('who is counted', () => {
  test('keeps a place for as long as it limits, however many others come', () => {
    const roll = new ClientTable(() => new Seat(), 10, 4)
    const first = roll.getOrCreate('first', 0)
    for (let i = 0; i < 1000; i++) roll.getOrCreate(`stranger ${i}`, 0)
    expect(roll.get('first')).toBe(first)
    expect(roll.getOrCreate('first', 0)).toBe(first)
    expect(roll.size).toBeLessThanOrEqual(10 + 4)
  })

  test('shares a place with others when all are taken, always the same', () => {
    const roll = new ClientTable(() => new Seat(), 10, 4)
    for (let i = 0; i < 10; i++) roll.getOrCreate(i, 0)
    const late = Array.from({ length: 100 }, (_, i) => roll.getOrCreate(`late ${i}`, 0))
    expect(new Set(late).size).toBe(4)
    expect(Array.from({ length: 100 }, (_, i) => roll.getOrCreate(`late ${i}`, 0))).toEqual(late)
    expect(roll.get('late 7')).toBe(late[7])
  })

  test('has a place of its own again when others are idle', () => {
    const roll = new ClientTable(() => new Seat(), 2, 1)
    const first = roll.getOrCreate('a', 0)
    roll.getOrCreate('b', 0)
    first.untilMs = 5
    expect(roll.getOrCreate('c', 5)).not.toBe(roll.getOrCreate('d', 5))
    expect(roll.get('a')).toBe(roll.get('d'))
  })
})

test('an idle place is found wherever it is, a few being looked at for each who comes', () => {
  const roll = new ClientTable(() => new Seat(), 1_000, 1)
  for (let i = 0; i < 1_000; i++) roll.getOrCreate(i, 0)
  for (const i of [900, 901]) roll.getOrCreate(i, 0).untilMs = 0
  const shared = roll.getOrCreate('early', 0)
  const late = Array.from({ length: 100 }, (_, i) => roll.getOrCreate(`late ${i}`, 0))
  expect(late.filter((place) => place !== shared)).toHaveLength(1)
  // Nor is anybody looked at twice before all others.
  expect(roll.get(900)).toBe(shared)
  expect(roll.get(901)).toBe(shared)
})

test('a crowd of strangers gives nobody a fresh start, nor is it without a limit itself', () => {
  let nowMs = 0
  const counts = new LocalCounter(() => nowMs)
  const take = (whom: string): boolean =>
    counts.take({ name: 'login requests', subject: whom, max: 2, windowMs: 60_000 }).allowed
  expect([take('flooder'), take('flooder'), take('flooder')]).toEqual([true, true, false])
  let through = 0
  for (let i = 0; i < 60_000; i++) if (take(`stranger ${i}`)) through += 1
  // Those without a place of their own have 1,024 places together.
  expect(through).toBeLessThanOrEqual(50_000 + 2 * 1024)
  expect(take('flooder')).toBe(false)
  nowMs = 60_000
  expect(take('flooder')).toBe(true)
  expect(take('stranger 59999')).toBe(true)
})
