import { describe, expect, test } from 'vitest'
import { randomFrom } from '../fixtures/random.ts'
import type { Target } from '../fuzz/target.ts'
import { TARGETS } from '../fuzz/targets.ts'

/** The minimum time of a few runs, for an input that repeats a piece up to a size. */
async function millisecondsFor(
  target: Target,
  [before, piece, after]: Target['repeated'][number],
  size: number,
): Promise<number> {
  const input = Buffer.from(before + piece.repeat(Math.ceil(size / piece.length)) + after)
  let least = Number.POSITIVE_INFINITY
  for (let i = 0; i < 5; i++) {
    const began = performance.now()
    try {
      await target.run(input, randomFrom(1))
    } catch {
      // A refusal, whatever its reason.
    }
    least = Math.min(least, performance.now() - began)
  }
  return least
}

describe('time for longer inputs', () => {
  test.each(Object.entries(TARGETS))(
    "the time to process an input grows only in proportion to the input's length: %s",
    { timeout: 300_000 },
    async (_, loadTarget) => {
      const target = await loadTarget()
      const steep: string[] = []
      const seeds = target.seeds.map((seed) => seed.toString())
      const alone = [...new Set([...target.tokens, ...seeds])].map((piece) => ['', piece, ''] as const)
      for (const grown of [...target.repeated, ...alone]) {
        const few = await millisecondsFor(target, grown, 30_000)
        const many = await millisecondsFor(target, grown, 480_000)
        // A sixteenfold input may take sixteen times as long; quadratic time would be 256 times.
        if (many > 100 && many > few * 80)
          steep.push(`${JSON.stringify(grown[1].slice(0, 80))}: ${few} and ${many} ms`)
      }
      expect(steep).toEqual([])
    },
  )
})
