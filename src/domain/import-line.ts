/** Kinds of imported rows and entries, as a report names them. */
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
 * Result for a row or an entry: `carried` means imported unchanged, `changed` imported with the changes in its
 * notes, `there` that it existed already, and `left` that it was not imported.
 */
export const IMPORT_OUTCOMES = ['carried', 'changed', 'there', 'left'] as const

export type ImportOutcome = (typeof IMPORT_OUTCOMES)[number]

/** What an import can read: databases of two gateways, and the configuration of a third one. */
export const IMPORT_SOURCES = ['one-api', 'new-api', 'litellm'] as const

export type ImportSourceName = (typeof IMPORT_SOURCES)[number]

/** Line of a report: the result for one row or entry of the source. */
export interface ReportLine {
  readonly kind: ImportKind
  /** Id in the source; undefined for entries that have only a name. */
  readonly id: number | undefined
  /** Name in the source, unescaped. */
  readonly name: string
  readonly fate: ImportOutcome
  /** Sentences for the operator, without keys. */
  readonly notes: readonly string[]
  /** Number of items that the line covers, if there are several: rows of a table, users of a login. */
  readonly count?: number
  /** What the operator can do instead. */
  readonly wayOut?: string
}

/** Numbers of lines, by kind and result. */
export type ImportCounts = Readonly<Record<ImportKind, Readonly<Record<ImportOutcome, number>>>>

/** Counts the lines of a report. */
export function countLines(lines: readonly ReportLine[]): ImportCounts {
  const counts = Object.fromEntries(
    IMPORT_KINDS.map((kind) => [kind, { carried: 0, changed: 0, there: 0, left: 0 }]),
  ) as Record<ImportKind, Record<ImportOutcome, number>>
  for (const { kind, fate } of lines) counts[kind][fate] += 1
  return counts
}

/** Orders lines by kind, and those that need attention first. */
export function compareLines(one: ReportLine, other: ReportLine): number {
  return rank(one) - rank(other)
}

const ATTENTION: Readonly<Record<ImportOutcome, number>> = { left: 0, changed: 1, there: 2, carried: 3 }

function rank({ kind, fate }: ReportLine): number {
  return IMPORT_KINDS.indexOf(kind) * 10 + ATTENTION[fate]
}
