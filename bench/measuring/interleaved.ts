import type { Effort } from './effort.ts'
import type { Figure, Round } from './figure.ts'

/**
 * Measures the candidates one after the other, in a different order each round, so that other load affects
 * all of them alike. Runs as many rounds as the effort allows.
 */
export async function interleaved<Name extends string>(
  names: readonly Name[],
  { rounds: [min, max], budgetMs }: Pick<Effort, 'rounds' | 'budgetMs'>,
  random: () => number,
  measure: (name: Name) => Promise<Figure>,
): Promise<Round[]> {
  const began = performance.now()
  const rounds: Round[] = []
  while (rounds.length < min || (rounds.length < max && performance.now() - began < budgetMs)) {
    const round: Record<string, Figure> = {}
    for (const name of shuffled(names, random)) round[name] = await measure(name)
    rounds.push(round)
  }
  return rounds
}

/** The values in a random order. */
export function shuffled<Value>(values: readonly Value[], random: () => number): Value[] {
  return values
    .map((value) => ({ value, at: random() }))
    .toSorted((a, b) => a.at - b.at)
    .map(({ value }) => value)
}
