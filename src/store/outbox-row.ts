import type { SettledCall } from './ledger-writes.ts'
import { COUNT_COLUMNS, countsOf } from './usage-counts.ts'

/** Serializes a settled call for the outbox: its usage row by column names, and its count of requests. */
export function outboxRow(call: SettledCall): string {
  const counts = countsOf(call.usage)
  return JSON.stringify({
    id: call.id,
    ended_ms: call.ended_ms,
    user_id: call.user_id,
    token_id: call.token_id,
    model: call.model,
    upstream_model: call.upstream_model,
    channel: call.channel,
    group_name: call.group,
    ...Object.fromEntries(COUNT_COLUMNS.map((name, index) => [name, counts[index]])),
    quota: call.quota,
    price_version: call.price_version,
    duration_ms: call.duration_ms,
    first_byte_ms: call.first_byte_ms,
    stream: call.stream ? 1 : 0,
    reason: call.reason,
    kind: call.kind,
    requested_model: call.requested_model,
    ...(call.attempts !== undefined && { attempts: call.attempts }),
    ...(call.particulars !== undefined && { particulars: call.particulars }),
    ...(call.price_incomplete && { price_incomplete: 1 }),
    ...(call.note && { note: call.note }),
    requests: call.delivered ? 1 : 0,
    budgets: call.budgets,
  })
}
