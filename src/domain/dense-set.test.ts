import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DenseSet } from './dense-set.ts'

interface Member {
  readonly name: number
  place: number
}

const member = (name: number): Member => ({ name, place: -1 })

describe('a roster', () => {
  test('holds what a set would', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 200 }), (names) => {
        const members = Array.from({ length: 21 }, (_, name) => member(name))
        const roster = new DenseSet<Member>()
        const set = new Set<Member>()
        for (const name of names) {
          const one = members[name] as Member
          if (set.has(one)) {
            roster.delete(one)
            set.delete(one)
          } else {
            roster.add(one)
            set.add(one)
          }
          expect(roster.size).toBe(set.size)
        }
        expect(new Set(roster)).toEqual(set)
      }),
    )
  })

  test('does nothing where it is to strike off who is not in it', () => {
    const roster = new DenseSet<Member>()
    const [one, other] = [member(1), member(2)]
    roster.add(one)
    roster.delete(other)
    roster.delete(one)
    roster.delete(one)
    expect(roster.size).toBe(0)
  })

  test('tells all that stay, whoever is struck off meanwhile', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.array(fc.nat(11)), { maxLength: 12 }),
        (size, leaving) => {
          const members = Array.from({ length: size }, (_, name) => member(name))
          const roster = new DenseSet<Member>()
          for (const one of members) roster.add(one)
          const told = new Set<Member>()
          let step = 0
          for (const one of roster) {
            told.add(one)
            for (const name of leaving[step++] ?? []) if (members[name]) roster.delete(members[name])
          }
          for (const one of members.filter(({ place }) => place !== -1)) expect(told).toContain(one)
        },
      ),
    )
  })
})
