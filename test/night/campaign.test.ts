import process from 'node:process'
import { afterAll, describe, expect, test } from 'vitest'
import { campaign, TARGETS } from '../corpus/campaign.ts'
import type { Target } from '../corpus/target.ts'
import { randomFrom } from '../equipment/random.ts'
import { nightSeed } from './night-seed.ts'

const seed = nightSeed()
/** Seconds for each target. NIGHT_SECONDS makes it longer. */
const SECONDS = Number(process.env['NIGHT_SECONDS'] ?? 60)

let total = 0
afterAll(() => console.log(`${total} runs in all`))

describe(`no input that is bred for ${SECONDS} s breaks`, () => {
  test.each(Object.entries(TARGETS))('%s', { timeout: SECONDS * 2000 + 10_000 }, (name, target) => {
    const runs = campaign(target, randomFrom(seed), SECONDS * 1000)
    total += runs
    console.log(`${name}: ${runs} runs`)
    expect(runs).toBeGreaterThan(100)
  })
})

/** The minimum time of several runs, for an input that repeats a piece up to a size. */
function millisecondsFor(
  target: Target,
  [before, piece, after]: Target['grown'][number],
  size: number,
): number {
  const input = Buffer.from(before + piece.repeat(Math.ceil(size / piece.length)) + after)
  const times = Array.from({ length: 5 }, () => {
    const began = performance.now()
    try {
      target.run(input, randomFrom(1))
    } catch {
      // A refusal for any reason.
    }
    return performance.now() - began
  })
  return Math.min(...times)
}

describe('no longer input takes more than its share of time:', () => {
  test.each(Object.entries(TARGETS))('%s', { timeout: 300_000 }, (_, target) => {
    const steep: string[] = []
    const alone = [...new Set([...target.tokens, ...target.seeds])].map((piece) => ['', piece, ''] as const)
    for (const grown of [...target.grown, ...alone]) {
      const [few, many] = [millisecondsFor(target, grown, 30_000), millisecondsFor(target, grown, 480_000)]
      // The input is sixteen times as long; quadratic time would be sixteen times sixteen as much.
      if (many > 100 && many > few * 80)
        steep.push(`${JSON.stringify(grown[1].slice(0, 80))}: ${few} and ${many} ms`)
    }
    expect(steep).toEqual([])
  })
})
