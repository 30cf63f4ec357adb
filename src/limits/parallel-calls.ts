/** A limit on calls under way at once, and its subject. */
export interface ParallelLimit {
  /** Name of the subject: `key 17`. */
  readonly subject: string
  /** 0 = off. */
  readonly max: number
}

/**
 * Counts the calls under way. Of several nodes each lets through its share of a limit, and one at least:
 * a limit that is not below the number of nodes holds over all of them, whatever becomes of a node.
 */
export class ParallelCalls {
  readonly #nodeCount: () => number
  readonly #underWay = new Map<string, number>()

  /** `nodeCount`: number of nodes that share the limits, this one included. */
  constructor(nodeCount: () => number) {
    this.#nodeCount = nodeCount
  }

  /** Begins a call; false, with nothing counted, where one of the limits is reached. */
  begin(limits: readonly ParallelLimit[]): boolean {
    if (limits.some((limit) => this.#isReached(limit))) return false
    for (const { subject, max } of limits)
      if (max > 0) this.#underWay.set(subject, (this.#underWay.get(subject) ?? 0) + 1)
    return true
  }

  /** Ends a call that `begin` has counted with the same limits. */
  end(limits: readonly ParallelLimit[]): void {
    for (const { subject, max } of limits) {
      if (max === 0) continue
      const rest = (this.#underWay.get(subject) ?? 0) - 1
      if (rest > 0) this.#underWay.set(subject, rest)
      else this.#underWay.delete(subject)
    }
  }

  #isReached({ subject, max }: ParallelLimit): boolean {
    if (max === 0) return false
    const share = Math.max(1, Math.floor(max / this.#nodeCount()))
    return (this.#underWay.get(subject) ?? 0) >= share
  }
}
