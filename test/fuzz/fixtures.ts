import type { Target } from './target.ts'

const PLAIN = { tokens: [], repeated: [] } as const

/** Targets with planted defects, for the tests of the engine itself. */
export const FIXTURES: Readonly<Record<string, Target>> = {
  /** Fails on one sequence of three bytes: without guidance, it takes about 256³ inputs to find. */
  lock: {
    ...PLAIN,
    seeds: ['---'],
    run([a, b, c]) {
      if (a === 0x6b) {
        if (b === 0x65) {
          if (c === 0x79) throw new Error('open')
        }
      }
    },
  },
  /** Loops forever on an input with a capital Z. */
  endless: {
    ...PLAIN,
    seeds: ['a'],
    run(input) {
      let turns = 0
      while (input.includes('Z')) turns++
      return turns
    },
  },
  /** Uses unlimited memory on an input with a capital Z. */
  hoard: {
    ...PLAIN,
    seeds: ['a'],
    run(input) {
      const kept: Buffer[] = []
      while (input.includes('Z')) kept.push(Buffer.alloc(1 << 20, 1))
    },
  },
}
