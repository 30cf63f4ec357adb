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
const MEMBERS = [...USAGE.columns, ...SETTLEMENT_FIELDS.columns].map(
  ({ name }) => `,${JSON.stringify(name)}:`,
)

/** Lists the values of `ROW_COLUMNS` in the same order. */
export function rowValues(call: SettledCall): Stored[] {
  return listCounts(call.usage, listOwn(call))
}

/**
 * Serializes a settled call for the outbox: its usage row by column names, with the accounts it is charged
 * to. Values that are empty or 0 are left out.
 */
export function serializeForOutbox(call: SettledCall): string {
  const values = listCharged(call, rowValues(call))
  let members = ''
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i]!
    if (value) members += MEMBERS[i]! + (typeof value === 'string' ? JSON.stringify(value) : value)
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
