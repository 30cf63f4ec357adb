import type { ToolKind, ToolUse } from './tool-use.ts'

/** Uses of the provider's tools that a reply has reported so far. */
export interface SeenTools {
  /** One entry for each kind and form. */
  readonly uses: readonly ToolUse[]
  /** Kinds of the uses in the order in which they began. */
  readonly begun: readonly ToolKind[]
}

const NONE: readonly never[] = []
/** Maximum number of uses that are counted separately. */
const MAX_USES = 10_000

/** No uses. */
export const NO_TOOLS: SeenTools = { uses: NONE, begun: NONE }

/**
 * Counts the uses of tools in a reply. Each use has a key, so that one that is reported twice counts once.
 */
export class ToolTally implements SeenTools {
  #uses: Map<string, ToolUse> | undefined
  #begun: ToolKind[] | undefined

  get begun(): readonly ToolKind[] {
    return this.#begun ?? NONE
  }

  get uses(): readonly ToolUse[] {
    if (!this.#uses) return NONE
    const sums = new Map<string, ToolUse>()
    for (const use of this.#uses.values()) {
      const key = `${use.kind} ${use.form ?? ''}`
      sums.set(key, { ...use, count: use.count + (sums.get(key)?.count ?? 0) })
    }
    return [...sums.values()]
  }

  /** Records a use. A later one with the same key replaces it. */
  note(key: string, use: ToolUse): void {
    const uses = (this.#uses ??= new Map())
    const before = uses.get(key)
    if (!before && uses.size >= MAX_USES) return
    uses.set(key, use)
    for (let count = before?.count ?? 0; count < Math.min(use.count, MAX_USES); count++)
      (this.#begun ??= []).push(use.kind)
  }

  /** Removes a record that turned out not to be a use. */
  remove(key: string): void {
    this.#uses?.delete(key)
  }
}

/** Returns the number of uses of a kind. */
export function usesOf(uses: readonly ToolUse[], kind: ToolKind): number {
  return uses.reduce((sum, use) => (use.kind === kind ? sum + use.count : sum), 0)
}

/** Returns the uses of all other kinds. */
export function usesBeside(uses: readonly ToolUse[], ...kinds: readonly ToolKind[]): readonly ToolUse[] {
  return uses.length === 0 ? uses : uses.filter(({ kind }) => !kinds.includes(kind))
}
