/** Kinds of imported items, as the import report names them. */
export const IMPORT_KINDS = [
  'user',
  'token',
  'channel',
  'group',
  'price',
  'option',
  'login',
  'table',
] as const

export type ImportKind = (typeof IMPORT_KINDS)[number]

/**
 * Result for an item: `carried` means imported unchanged, `changed` imported with the changes that its notes
 * name, `there` that it already existed, and `left` that it was not imported.
 */
export const IMPORT_OUTCOMES = ['carried', 'changed', 'there', 'left'] as const

export type ImportOutcome = (typeof IMPORT_OUTCOMES)[number]

/** What can be imported: the databases of One API and New API, and the configuration of LiteLLM. */
export const IMPORT_SOURCES = ['one-api', 'new-api', 'litellm'] as const

export type ImportSourceName = (typeof IMPORT_SOURCES)[number]

/** A line of the import report: the result for one item of the source. */
export interface ReportLine {
  readonly kind: ImportKind
  /** Id in the source; undefined for items that have only a name. */
  readonly id: number | undefined
  /** Name in the source, as it is there, without escaping. */
  readonly name: string
  readonly fate: ImportOutcome
  /** Sentences for the operator. They contain no keys. */
  readonly notes: readonly string[]
  /**
   * Number of items that the line covers, if there are several: rows of a table, or users of a login method
   * such as Telegram.
   */
  readonly count?: number
  /** What the operator can do if the item was not imported. */
  readonly wayOut?: string
}

/** Number of report lines by kind and result. */
export type ImportCounts = Readonly<Record<ImportKind, Readonly<Record<ImportOutcome, number>>>>

export function countLines(lines: readonly ReportLine[]): ImportCounts {
  const counts = Object.fromEntries(
    IMPORT_KINDS.map((kind) => [kind, { carried: 0, changed: 0, there: 0, left: 0 }]),
  ) as Record<ImportKind, Record<ImportOutcome, number>>
  for (const { kind, fate } of lines) counts[kind][fate] += 1
  return counts
}

/** A planned line whose row could not be written, and the error. */
export interface RefusedLine {
  readonly planned: ReportLine
  readonly reason: string
}

/**
 * Puts lines with the errors in place of the planned lines of rows that could not be written. `lines` may be only the first
 * ones of a report; there are as many afterwards. `counts` has all of them.
 */
export function withRefusedLines(
  { lines, counts }: { readonly lines: readonly ReportLine[]; readonly counts: ImportCounts },
  refused: readonly RefusedLine[],
): { readonly lines: readonly ReportLine[]; readonly counts: ImportCounts } {
  const nameOf = ({ kind, id, name, fate }: ReportLine): string => JSON.stringify([kind, id, name, fate])
  const replaced = new Map<string, number>()
  const changed = structuredClone(counts) as Record<ImportKind, Record<ImportOutcome, number>>
  for (const { planned } of refused) {
    replaced.set(nameOf(planned), (replaced.get(nameOf(planned)) ?? 0) + 1)
    changed[planned.kind][planned.fate] -= 1
    changed[planned.kind].left += 1
  }
  const others = lines.filter((line) => {
    const left = replaced.get(nameOf(line)) ?? 0
    if (left > 0) replaced.set(nameOf(line), left - 1)
    return left === 0
  })
  const written = refused.map(({ planned, reason }): ReportLine => {
    return { ...planned, fate: 'left', notes: [`it could not be written: ${reason}`] }
  })
  return { lines: [...others, ...written].toSorted(compareLines).slice(0, lines.length), counts: changed }
}

/** Orders report lines by kind; within a kind, those that need attention come first. */
export function compareLines(one: ReportLine, other: ReportLine): number {
  return rank(one) - rank(other)
}

const ATTENTION: Readonly<Record<ImportOutcome, number>> = { left: 0, changed: 1, there: 2, carried: 3 }

function rank({ kind, fate }: ReportLine): number {
  return IMPORT_KINDS.indexOf(kind) * 10 + ATTENTION[fate]
}
