import type { UsageFilter } from '../../domain/usage-filter.ts'
import type { CallNames, SettledCall } from '../../domain/records/usage.ts'

type CallMatch = (call: SettledCall) => boolean

/** Tells whether a call is one that the filter finds in the usage log, but for its names. */
export function matchOf(filter: UsageFilter): CallMatch {
  const { fromMs, beforeMs, reasons } = filter
  const matches: CallMatch[] = FIELDS.flatMap((field) => {
    const wanted = filter[field]
    return wanted === undefined ? [] : [(call: SettledCall) => call[field] === wanted]
  })
  if (fromMs !== undefined) matches.push(({ ended_ms }) => ended_ms >= fromMs)
  if (beforeMs !== undefined) matches.push(({ ended_ms }) => ended_ms < beforeMs)
  if (reasons) matches.push(({ reason }) => reasons.includes(reason))
  return (call) => matches.every((match) => match(call))
}

/** Tells whether the names of a call are those of the filter; undefined if it takes all names. */
export function nameMatchOf({
  username,
  token_name,
}: UsageFilter): ((names: CallNames) => boolean) | undefined {
  if (username === undefined && token_name === undefined) return undefined
  return (names) =>
    (username ?? names.username) === names.username && (token_name ?? names.token_name) === names.token_name
}

/** Fields that are compared for equality. */
const FIELDS = ['id', 'user_id', 'model', 'channel', 'group'] as const satisfies readonly (keyof UsageFilter &
  keyof SettledCall)[]
