import type { Stored } from '../domain/records/field-types.ts'
import { listerOf } from '../domain/records/record.ts'
import { CHARGED, type SettledCall, USAGE } from '../domain/records/usage.ts'

/** Columns of the usage log. */
export const ROW_COLUMNS: readonly string[] = USAGE.columns.map(({ name }) => name)

const listOwn = listerOf(USAGE.columns.filter(({ field }) => field in USAGE.fields))
const listCounts = listerOf(USAGE.columns.filter(({ field }) => field in USAGE.parts))
const listCharged = listerOf(CHARGED.columns)
const MEMBERS = [...USAGE.columns, ...CHARGED.columns].map(({ name }) => `,${JSON.stringify(name)}:`)

/** Lists the values of `ROW_COLUMNS` in the same order. */
export function rowValues(call: SettledCall): Stored[] {
  return listCounts(call.usage, listOwn(call))
}

/**
 * Serializes a settled call for the outbox: its usage row by column names, and what accounts need of it.
 * Values that are empty or 0 are left out.
 */
export function outboxRow(call: SettledCall): string {
  const values = listCharged(call, rowValues(call))
  let members = ''
  for (let i = 0; i < values.length; i += 1) {
    const value = values[i]!
    if (value) members += MEMBERS[i]! + (typeof value === 'string' ? JSON.stringify(value) : value)
  }
  return `{${members.slice(1)}}`
}
