import { USAGE_COUNTS, type UsageColumns } from '../domain/records/usage-counts.ts'
import type { Usage } from '@sluice/wire/usage'

const COUNTS = Object.entries(USAGE_COUNTS).map(([name, { column }]) => ({
  name: name as keyof Usage,
  column,
}))

/** Columns of usage, in the usage log and in the daily sums. */
export const COUNT_COLUMNS: readonly (keyof UsageColumns)[] = COUNTS.map(({ column }) => column)

/** Adds a usage to sums that contain `COUNT_COLUMNS`, beginning at this index. */
export function addCounts(sums: number[], start: number, usage: Usage): void {
  for (let i = 0; i < COUNTS.length; i += 1) {
    const count = usage[COUNTS[i]!.name]
    if (count) sums[start + i]! += count
  }
}

/** Converts the columns of usage, in a row of the usage log or a sum of rows. */
export function usageFromRow(row: UsageColumns): Usage {
  return Object.fromEntries(COUNTS.map(({ name, column }) => [name, row[column]])) as unknown as Usage
}
