import { randomFrom } from '../equipment/random.ts'
import type { Coverage } from './coverage.ts'
import type { Target } from './target.ts'

/** Larger inputs are not kept: what they reach is reached again in each run by what they are bred from. */
const MOST_BYTES = 2_048
/** Ways to be taken that are kept an input of, where they reach nothing that others do not. */
const MOST_WAYS = 20

/** Of these inputs so many, the short ones first, that all which they reach together is still reached. */
export async function smallestCover(
  target: Target,
  inputs: readonly Buffer[],
  coverage: Coverage,
): Promise<Buffer[]> {
  const cover: Buffer[] = []
  const ways = new Set<unknown>()
  coverage.take()
  for (const input of inputs.toSorted((a, b) => a.length - b.length)) {
    if (input.length > MOST_BYTES) break
    let way: unknown
    try {
      way = await target.run(input, randomFrom(input.length))
    } catch {
      // It is refused, which is a way to be taken too: by what is reached.
    }
    const reached = coverage.take()
    const isTakenAnew = typeof way === 'string' && !ways.has(way) && ways.size < MOST_WAYS
    if (!isTakenAnew && !coverage.isNew(reached)) continue
    ways.add(way)
    coverage.add(reached)
    cover.push(input)
  }
  return cover
}
