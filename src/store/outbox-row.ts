import type { SettledCall } from './ledger-writes.ts'
import { COUNT_COLUMNS, countsOf } from './usage-counts.ts'

/** Serializes a settled call for the outbox: its usage row by column names, and its count of requests. */
export function outboxRow(call: SettledCall): string {
  const counts = countsOf(call.usage)
  return JSON.stringify({
    id: call.id,
    ended_ms: call.endedMs,
    user_id: call.userId,
    token_id: call.tokenId,
    model: call.model,
    upstream_model: call.upstreamModel,
    channel: call.channel,
    group_name: call.group,
    ...Object.fromEntries(COUNT_COLUMNS.map((name, index) => [name, counts[index]])),
    quota: call.quota,
    price_version: call.priceVersion,
    duration_ms: call.durationMs,
    first_byte_ms: call.firstByteMs,
    stream: call.stream ? 1 : 0,
    reason: call.reason,
    kind: call.kind,
    requested_model: call.requestedModel,
    ...(call.attempts !== undefined && { attempts: call.attempts }),
    ...(call.particulars !== undefined && { particulars: call.particulars }),
    ...(call.priceIncomplete && { price_incomplete: 1 }),
    ...(call.note && { note: call.note }),
    requests: call.delivered ? 1 : 0,
    budgets: call.budgets,
  })
}
