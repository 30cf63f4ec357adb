import type { UsageEntry, UsageFilter } from '../../domain/usage-entry.ts'

/** Whether a call is one that the filter finds in the usage log. */
export function matchesFilter(entry: UsageEntry, filter: UsageFilter): boolean {
  const { fromMs, beforeMs } = filter
  if (fromMs !== undefined && entry.endedMs < fromMs) return false
  if (beforeMs !== undefined && entry.endedMs >= beforeMs) return false
  if (filter.reasons?.includes(entry.reason) === false) return false
  return FIELDS.every(([wanted, field]) => filter[wanted] === undefined || filter[wanted] === entry[field])
}

/** Fields that are compared for equality, by their names in the filter. */
const FIELDS = [
  ['id', 'id'],
  ['userId', 'userId'],
  ['username', 'username'],
  ['tokenName', 'tokenName'],
  ['model', 'model'],
  ['channel', 'channel'],
  ['group', 'group'],
] as const satisfies readonly (readonly [keyof UsageFilter, keyof UsageEntry])[]
