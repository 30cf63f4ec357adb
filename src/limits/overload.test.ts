import { describe, expect, test } from 'vitest'
import { Overload } from './overload.ts'

/** Of a thousand calls that come now, those that are let in. */
function letIn(overload: Overload, open = 1000): number {
  return Array.from({ length: 1000 }, () => {
    try {
      overload.admit(open, 2000)
      return 1
    } catch {
      return 0
    }
  }).reduce<number>((sum, one) => sum + one, 0)
}

function evenly(): () => number {
  let next = 0
  return () => (next++ % 1000) / 1000
}

describe('overload', () => {
  test('refuses nothing while the event loop is in time', () => {
    const overload = new Overload(evenly())
    for (let i = 0; i < 100; i++) overload.look(10)
    expect(letIn(overload)).toBe(1000)
  })

  test('is not what one long moment makes', () => {
    const overload = new Overload(evenly())
    overload.look(200)
    for (let i = 0; i < 5; i++) overload.look(0)
    expect(letIn(overload)).toBe(1000)
  })

  test('refuses a growing share while it is late, but never everything, and less and less afterwards', () => {
    const overload = new Overload(evenly())
    for (let i = 0; i < 8; i++) overload.look(150)
    expect(letIn(overload)).toBeLessThan(900)
    for (let i = 0; i < 100; i++) overload.look(150)
    expect(letIn(overload)).toBe(50)
    for (let i = 0; i < 100; i++) overload.look(0)
    expect(letIn(overload)).toBe(1000)
  })

  test('is not what makes a gateway late that has little to do', () => {
    const overload = new Overload(evenly())
    for (let i = 0; i < 100; i++) overload.look(500)
    expect(letIn(overload, 10)).toBe(1000)
  })

  test('says when to come back', () => {
    const overload = new Overload(() => 0)
    for (let i = 0; i < 20; i++) overload.look(500)
    expect(() => overload.admit(100, 200)).toThrow(
      expect.objectContaining({ code: 'overloaded', retryAfter: 1 }),
    )
  })

  test('refuses what would be more than may be under way', () => {
    const overload = new Overload(() => 1)
    expect(() => overload.admit(3, 3)).not.toThrow()
    expect(() => overload.admit(4, 3)).toThrow('3 calls are under way')
  })
})
