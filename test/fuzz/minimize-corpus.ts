import { randomFrom } from '../equipment/random.ts'
import type { Coverage } from './coverage.ts'
import type { Target } from './target.ts'

/** Larger inputs are not kept: what they reach is reached again in each run by what they are bred from. */
const MAX_BYTES = 2_048
/** Ways to be taken that are kept an input of, where they reach nothing that others do not. */
const MAX_BEHAVIOURS = 20

/** Of these inputs so many, the short ones first, that all which they reach together is still reached. */
export async function minimizedCorpus(
  target: Target,
  inputs: readonly Buffer[],
  coverage: Coverage,
): Promise<Buffer[]> {
  const minimized: Buffer[] = []
  const behaviours = new Set<unknown>()
  coverage.take()
  for (const input of inputs.toSorted((a, b) => a.length - b.length)) {
    if (input.length > MAX_BYTES) break
    let behaviour: unknown
    try {
      behaviour = await target.run(input, randomFrom(input.length))
    } catch {
      // It is refused, which is a way to be taken too: by what is reached.
    }
    const reached = coverage.take()
    const isTakenAnew = typeof behaviour === 'string' && !behaviours.has(behaviour) && behaviours.size < MAX_BEHAVIOURS
    if (!isTakenAnew && !coverage.isNew(reached)) continue
    behaviours.add(behaviour)
    coverage.add(reached)
    minimized.push(input)
  }
  return minimized
}
