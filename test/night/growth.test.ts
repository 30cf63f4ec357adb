import { describe, expect, test } from 'vitest'
import { randomFrom } from '../fixtures/random.ts'
import type { Target } from '../fuzz/target.ts'
import { TARGETS } from '../fuzz/targets.ts'

/** The least time of a few, of an input that repeats something up to a size. */
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
      // Refused, whatever for.
    }
    least = Math.min(least, performance.now() - began)
  }
  return least
}

describe('nothing takes more than its share of time for a longer input:', () => {
  test.each(Object.entries(TARGETS))('%s', { timeout: 300_000 }, async (_, loadTarget) => {
    const target = await loadTarget()
    const steep: string[] = []
    const seeds = target.seeds.map((seed) => seed.toString())
    const alone = [...new Set([...target.tokens, ...seeds])].map((piece) => ['', piece, ''] as const)
    for (const grown of [...target.repeated, ...alone]) {
      const few = await millisecondsFor(target, grown, 30_000)
      const many = await millisecondsFor(target, grown, 480_000)
      // Sixteen times as much; sixteen times sixteen would be square.
      if (many > 100 && many > few * 80)
        steep.push(`${JSON.stringify(grown[1].slice(0, 80))}: ${few} and ${many} ms`)
    }
    expect(steep).toEqual([])
  })
})
