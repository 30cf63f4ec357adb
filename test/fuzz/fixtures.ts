import type { Target } from './target.ts'

const PLAIN = { tokens: [], grown: [] } as const

/** Targets with defects that are there to be found, for the tests of the engine itself. */
export const FIXTURES: Readonly<Record<string, Target>> = {
  /** Three bytes that have to be guessed one after the other: by chance alone it takes 256 to the third. */
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
  /** An input with a capital Z never ends. */
  endless: {
    ...PLAIN,
    seeds: ['a'],
    run(input) {
      let turns = 0
      while (input.includes('Z')) turns++
      return turns
    },
  },
  /** An input with a capital Z takes memory without end. */
  hoard: {
    ...PLAIN,
    seeds: ['a'],
    run(input) {
      const kept: Buffer[] = []
      while (input.includes('Z')) kept.push(Buffer.alloc(1 << 20, 1))
    },
  },
}
