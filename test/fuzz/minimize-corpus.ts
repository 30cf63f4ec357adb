import { randomFrom } from '../fixtures/random.ts'
import type { Coverage } from './coverage.ts'
import type { Target } from './target.ts'

/** Inputs above this size are left out: each run finds their coverage again by mutating the others. */
const MAX_BYTES = 2_048
/** Maximum number of behaviours for which an input is kept although its coverage is not new. */
const MAX_BEHAVIOURS = 20

/** Selects inputs, short ones first, that together reach the same code as all inputs. */
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
      // A refusal counts by its coverage.
    }
    const reached = coverage.take()
    const isNewBehaviour =
      typeof behaviour === 'string' && !behaviours.has(behaviour) && behaviours.size < MAX_BEHAVIOURS
    if (!isNewBehaviour && !coverage.isNew(reached)) continue
    behaviours.add(behaviour)
    coverage.add(reached)
    minimized.push(input)
  }
  return minimized
}
