import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { DenseSet } from './dense-set.ts'

interface Member {
  readonly name: number
  index: number
}

const member = (name: number): Member => ({ name, index: -1 })

describe('a dense set', () => {
  test('after any operations a dense set has the same elements as a JavaScript Set', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(20), { maxLength: 200 }), (names) => {
        const members = Array.from({ length: 21 }, (_, name) => member(name))
        const dense = new DenseSet<Member>()
        const set = new Set<Member>()
        for (const name of names) {
          const one = members[name] as Member
          if (set.has(one)) {
            dense.delete(one)
            set.delete(one)
          } else {
            dense.add(one)
            set.add(one)
          }
          expect(dense.size).toBe(set.size)
        }
        expect(new Set(dense)).toEqual(set)
      }),
    )
  })

  test('a dense set ignores the deletion of a value that it does not contain', () => {
    const dense = new DenseSet<Member>()
    const [one, other] = [member(1), member(2)]
    dense.add(one)
    dense.delete(other)
    dense.delete(one)
    dense.delete(one)
    expect(dense.size).toBe(0)
  })

  test('a dense set yields all remaining values, whichever are deleted during the iteration', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 12 }),
        fc.array(fc.array(fc.nat(11)), { maxLength: 12 }),
        (size, leaving) => {
          const members = Array.from({ length: size }, (_, name) => member(name))
          const dense = new DenseSet<Member>()
          for (const one of members) dense.add(one)
          const told = new Set<Member>()
          let step = 0
          for (const one of dense) {
            told.add(one)
            for (const name of leaving[step++] ?? []) if (members[name]) dense.delete(members[name])
          }
          for (const one of members.filter(({ index }) => index !== -1)) expect(told).toContain(one)
        },
      ),
    )
  })
})
