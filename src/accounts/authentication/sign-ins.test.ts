import { describe, expect, test } from 'vitest'
import { SignIns } from './sign-ins.ts'

describe('where a user signed in from', () => {
  test('an IP address counts as known only for the user who has signed in from it', () => {
    const signIns = new SignIns()
    signIns.remember('ann', '192.0.2.1')
    expect(signIns.knows('ann', '192.0.2.1')).toBe(true)
    expect(signIns.knows('ann', '192.0.2.2')).toBe(false)
    expect(signIns.knows('ben', '192.0.2.1')).toBe(false)
    expect(signIns.knows('__proto__', '192.0.2.1')).toBe(false)
  })

  test('the last eight address blocks from which a user signed in are known', () => {
    const signIns = new SignIns()
    const places = Array.from({ length: 9 }, (_, n) => `192.0.2.${n}`)
    for (const place of places) signIns.remember('ann', place)
    signIns.remember('ann', '192.0.2.1')
    expect(places.filter((place) => !signIns.knows('ann', place))).toEqual(['192.0.2.0'])
    signIns.remember('ann', '192.0.2.9')
    expect(places.filter((place) => !signIns.knows('ann', place))).toEqual(['192.0.2.0', '192.0.2.2'])
  })

  test('a known address of a sign-in is forgotten after enough other users, but not after many addresses of one user', () => {
    const signIns = new SignIns(100)
    signIns.remember('ann', '192.0.2.1')
    for (let n = 0; n < 200; n += 1) signIns.remember('ben', `2001:db8::${n}`)
    expect(signIns.knows('ann', '192.0.2.1')).toBe(true)
    for (let n = 0; n < 100; n += 1) {
      signIns.remember(`user ${n}`, '198.51.100.1')
      signIns.knows('ann', '192.0.2.1')
    }
    expect(signIns.knows('ann', '192.0.2.1')).toBe(false)
  })
})
