import type { Usage } from '@sluice/wire/usage'
import type { Stored } from '../domain/records/field-types.ts'
import { valueListerOf } from '../domain/records/record.ts'
import { SETTLEMENT_FIELDS, type SettledCall, USAGE } from '../domain/records/usage.ts'
import { USAGE_COUNTS, type UsageColumns } from '../domain/records/usage-counts.ts'

/** Columns of the usage log. */
export const ROW_COLUMNS: readonly string[] = USAGE.columns.map(({ name }) => name)

const listOwn = valueListerOf(USAGE.columns.filter(({ field }) => field in USAGE.fields))
const listCounts = valueListerOf(USAGE.columns.filter(({ field }) => field in USAGE.parts))
const listCharged = valueListerOf(SETTLEMENT_FIELDS.columns)
const CHARGED = [...USAGE.columns, ...SETTLEMENT_FIELDS.columns]
const MEMBERS = CHARGED.map(({ name }) => `,${JSON.stringify(name)}:`)
const IS_NULLABLE = CHARGED.map(({ type }) => type.isNullable)

/** Lists the values of `ROW_COLUMNS` in the same order. */
export function rowValues(call: SettledCall): Stored[] {
  return listCounts(call.usage, listOwn(call))
}

/** Columns with a default that most calls have another value for. */
const USUAL: ReadonlySet<string> = new Set([
  'first_byte_ms',
  'service_tier',
  'region',
  'session',
  'input_tokens',
  'cache_read_tokens',
  'output_tokens',
  'reasoning_tokens',
])

const isPlain = ({ name, default: usual }: (typeof USAGE.columns)[number]): boolean =>
  usual === undefined || USUAL.has(name)

/** Columns of the usage log whose values a plain call states; all others have their defaults. */
export const PLAIN_ROW_COLUMNS: readonly string[] = USAGE.columns.filter(isPlain).map(({ name }) => name)

const PLAIN = USAGE.columns.map(isPlain)
const DEFAULTS = USAGE.columns.map(({ type, default: usual }) =>
  usual === undefined ? undefined : type.encode(usual),
)

/**
 * Returns those of the values of a row (`rowValues`) that a plain call states, in the order of
 * `PLAIN_ROW_COLUMNS`; undefined if another value is not the default, so that all must be written.
 */
export function plainValues(values: readonly Stored[]): Stored[] | undefined {
  const stated: Stored[] = []
  for (let i = 0; i < values.length; i += 1) {
    if (PLAIN[i]) stated.push(values[i]!)
    else if (values[i] !== DEFAULTS[i]) return undefined
  }
  return stated
}

/**
 * Serializes a settled call for the outbox: its usage row by column names, with the accounts it is charged
 * to. Values that are empty or 0 are left out, and of columns that may be null those that are.
 */
export function serializeForOutbox(call: SettledCall): string {
  const values = listCharged(call, rowValues(call))
  let members = ''
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i]!
    if (IS_NULLABLE[i] ? value !== null : value)
      members += MEMBERS[i]! + (typeof value === 'string' ? JSON.stringify(value) : value)
  }
  return `{${members.slice(1)}}`
}

const COUNTS = Object.entries(USAGE_COUNTS).map(([name, { column }]) => ({
  name: name as keyof Usage,
  column,
}))

/** Columns with numbers of tokens, in the usage log and in the sums. */
export const COUNT_COLUMNS: readonly (keyof UsageColumns)[] = COUNTS.map(({ column }) => column)

/** Adds a usage to an array of sums. The sums of `COUNT_COLUMNS` begin at the index `start`. */
export function addCounts(sums: number[], start: number, usage: Usage): void {
  for (let i = 0; i < COUNTS.length; i += 1) {
    const count = usage[COUNTS[i]!.name]
    if (count) sums[start + i]! += count
  }
}

/** Converts token columns to a usage. The row is one of the usage log, or a sum of several. */
export function usageFromRow(row: UsageColumns): Usage {
  return Object.fromEntries(COUNTS.map(({ name, column }) => [name, row[column]])) as unknown as Usage
}
