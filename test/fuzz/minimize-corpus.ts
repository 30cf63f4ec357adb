import { Coverage } from './coverage.ts'
import { runTarget, type Target } from './target.ts'

/** Inputs above this size are left out: each run finds their coverage again by mutating the others. */
const MAX_BYTES = 2_048
/** Maximum number of behaviours for which an input is kept although its coverage is not new. */
const MAX_BEHAVIOURS = 20

/**
 * Selects inputs that reach, together with the target's seeds, the same code as all inputs: short ones first, then
 * those of the selection that the longer ones do not make redundant.
 */
export async function minimizedCorpus(
  target: Target,
  inputs: readonly Buffer[],
  roots: readonly string[],
): Promise<Buffer[]> {
  const seeds = target.seeds.map((seed) => Buffer.from(seed as string))
  const short = inputs.filter((input) => input.length <= MAX_BYTES).toSorted((a, b) => a.length - b.length)
  const selected = await cover(target, seeds, short, new Coverage(roots))
  return await cover(target, seeds, selected.toReversed(), new Coverage(roots))
}

/** The inputs, in their order, that reach code or show a behaviour which neither the seeds nor earlier ones do. */
async function cover(
  target: Target,
  seeds: readonly Buffer[],
  inputs: readonly Buffer[],
  coverage: Coverage,
): Promise<Buffer[]> {
  const selected: Buffer[] = []
  const behaviours = new Set<unknown>()
  coverage.take()
  for (const [at, input] of [...seeds, ...inputs].entries()) {
    let behaviour: unknown
    try {
      behaviour = await runTarget(target, input)
    } catch {
      // A refusal counts by its coverage.
    }
    const reached = coverage.take()
    const isNewBehaviour =
      typeof behaviour === 'string' && !behaviours.has(behaviour) && behaviours.size < MAX_BEHAVIOURS
    if (!isNewBehaviour && !coverage.isNew(reached)) continue
    behaviours.add(behaviour)
    coverage.add(reached)
    if (at >= seeds.length) selected.push(input)
  }
  return selected
}
