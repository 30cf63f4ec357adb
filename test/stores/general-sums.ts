import { FAILED_REASONS } from '../../src/domain/call-outcome.ts'
import { bucketOf } from '../../src/domain/latency.ts'
import type { SettledCall } from '../../src/domain/records/usage.ts'
import { USAGE_COUNTS } from '../../src/domain/records/usage-counts.ts'

type Row = Readonly<Record<string, unknown>>
type Value = number | string

const DAY_MS = 86_400_000
const DIMENSIONS = [
  'user_id',
  'token_id',
  'model',
  'channel',
  'group_name',
  'service_tier',
  'region',
] as const
const ACCOUNTS: ReadonlySet<string> = new Set(['user_id', 'token_id'])

/** The kinds of sums, written down once more: length of the time, and the dimensions. */
const KINDS = [
  { kind: 1, ms: DAY_MS / 48, has: () => true },
  { kind: 2, ms: DAY_MS / 48, has: (name: string) => !ACCOUNTS.has(name) },
  { kind: 3, ms: DAY_MS, has: () => true },
  { kind: 4, ms: DAY_MS, has: (name: string) => !ACCOUNTS.has(name) },
  { kind: 5, ms: DAY_MS, has: (name: string) => ACCOUNTS.has(name) },
] as const

const COUNTS = Object.entries(USAGE_COUNTS).map(([name, { column }]) => [name, column] as const)

/** What one call adds to sums, by column, without latencies and causes. */
function amountsOf(call: SettledCall): Record<string, number> {
  const isFailed = (FAILED_REASONS as readonly string[]).includes(call.reason)
  return {
    requests: Number(call.delivered),
    failed: Number(isFailed),
    unanswered: Number(isFailed && !call.delivered),
    quota: call.quota,
    cache_saved: call.cache_saved ?? 0,
    cache_surcharge: call.cache_surcharge ?? 0,
    hits: Number(call.cache === 'hit'),
    hit_saved: call.hit_saved ?? 0,
    ...(call.cache_break ? { [`break_${call.cache_break}`]: 1 } : {}),
    ...Object.fromEntries(
      COUNTS.map(([name, column]) => [column, call.usage[name as keyof typeof call.usage]]),
    ),
  }
}

/** What one call adds to sums by route only. */
function routeAmountsOf(call: SettledCall): Record<string, number> {
  const { reason, cause, duration_ms, first_byte_ms } = call
  const isFailed = (FAILED_REASONS as readonly string[]).includes(reason)
  return {
    ...(cause && isFailed ? { [`failed_${cause}`]: 1 } : {}),
    ...(reason === 'complete' || reason === 'estimated' ? { [`total ${bucketOf(duration_ms)}`]: 1 } : {}),
    ...(call.delivered && first_byte_ms !== null && first_byte_ms !== undefined
      ? { [`first ${bucketOf(first_byte_ms)}`]: 1 }
      : {}),
  }
}

/**
 * The sums of these calls in their general form: call by call, for each kind. A text with the key of each row
 * and its amounts that are not 0, sorted.
 */
export function generalSums(calls: readonly SettledCall[]): string[] {
  const rows = new Map<string, Record<string, number>>()
  for (const call of calls)
    for (const { kind, ms, has } of KINDS) {
      const of: Record<(typeof DIMENSIONS)[number], Value> = {
        user_id: call.user_id,
        token_id: call.token_id,
        model: call.model,
        channel: call.channel,
        group_name: call.group,
        service_tier: call.service_tier ?? '',
        region: call.region ?? '',
      }
      const key = DIMENSIONS.map((name) => (has(name) ? of[name] : ACCOUNTS.has(name) ? 0 : ''))
      const name = JSON.stringify([kind, Math.floor(call.ended_ms / ms), ...key])
      const sums = rows.get(name) ?? {}
      rows.set(name, sums)
      const added = { ...amountsOf(call), ...(has('token_id') ? {} : routeAmountsOf(call)) }
      for (const [column, amount] of Object.entries(added)) sums[column] = (sums[column] ?? 0) + amount
    }
  return [...rows].map(([key, sums]) => described(key, sums)).toSorted()
}

/** Rows of `usage_sums` in the form of `generalSums`. */
export function sumsOfRows(rows: readonly Row[]): string[] {
  return rows
    .map((row) => {
      const { kind, start, total_latencies, first_latencies, ...others } = row
      const key = JSON.stringify([kind, start, ...DIMENSIONS.map((name) => others[name])])
      const amounts = Object.entries(others).filter(
        ([name]) => !(DIMENSIONS as readonly string[]).includes(name),
      )
      return described(key, {
        ...Object.fromEntries(amounts.map(([name, amount]) => [name, Number(amount)])),
        ...bucketsIn('total', total_latencies),
        ...bucketsIn('first', first_latencies),
      })
    })
    .toSorted()
}

function bucketsIn(name: string, text: unknown): Record<string, number> {
  const entries = String(text).split(' ').slice(0, -1)
  return Object.fromEntries(
    entries.map((entry) => {
      const [bucket = '', calls = ''] = entry.split(':')
      return [`${name} ${bucket}`, Number(calls)]
    }),
  )
}

function described(key: string, sums: Readonly<Record<string, number>>): string {
  const present = Object.entries(sums).filter(([, amount]) => amount !== 0)
  return `${key} ${JSON.stringify(Object.fromEntries(present.toSorted(([a], [b]) => (a < b ? -1 : 1))))}`
}
