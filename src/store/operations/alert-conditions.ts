import { randomBytes } from 'node:crypto'
import type { AlertEvent } from '../../domain/alert.ts'
import type { Db } from './operation.ts'

/** Prefix of conditions that are channels with an open circuit breaker. */
const CHANNEL = 'channel '
const OVERLOAD = 'overload'
/** Prefix of conditions that are tools without a price. */
const UNPRICED = 'unpriced '

/** Conditions that a node has seen since its last report. */
export interface ReportedConditions {
  readonly nowMs: number
  /** Channels whose circuit breaker has opened. */
  readonly opened: readonly string[]
  /** Time at which a channel counts as back, unless it is reported again. */
  readonly backAtMs: number
  /** Tools without a price that calls offered. */
  readonly unpriced?: {
    readonly tools: readonly { readonly model: string; readonly channel: string; readonly tool: string }[]
    /** Time before which none of these is reported again. */
    readonly untilMs: number
  }
  /** Load shedding; undefined if there was none. */
  readonly overload: { readonly reason: string; readonly untilMs: number } | undefined
}

/**
 * Stores conditions reported by a node, with an alert for each that no node has reported yet, because the
 * nodes of a cluster notice the same failure at different times.
 */
export async function reportConditions(
  db: Db,
  { nowMs, opened, backAtMs, unpriced, overload }: ReportedConditions,
): Promise<void> {
  for (const channel of opened)
    await report(db, CHANNEL + channel, backAtMs, nowMs, { type: 'channel.resting', data: { channel } })
  for (const tool of unpriced?.tools ?? []) {
    const name = `${UNPRICED}${JSON.stringify([tool.model, tool.channel, tool.tool])}`
    await report(db, name, unpriced?.untilMs ?? nowMs, nowMs, { type: 'price.incomplete', data: tool }, true)
  }
  if (!overload) return
  const { reason, untilMs } = overload
  await report(db, OVERLOAD, untilMs, nowMs, { type: 'gateway.overloaded', data: { reason } })
}

async function report(
  db: Db,
  name: string,
  untilMs: number,
  nowMs: number,
  began: AlertEvent,
  isTimed = false,
): Promise<void> {
  const before = await db
    .selectFrom('alert_conditions')
    .select('until_ms')
    .where('name', '=', name)
    .executeTakeFirst()
  // A condition that has not ended yet continues, unless it only lasts for a fixed time that has passed.
  const isKnown = before && (!isTimed || before.until_ms > nowMs)
  if (!isKnown) await addAlert(db, began, nowMs)
  if (isKnown && isTimed) return
  if (before && before.until_ms >= untilMs) return
  await db
    .insertInto('alert_conditions')
    .values({ name, until_ms: untilMs })
    .onConflict((conflict) => conflict.column('name').doUpdateSet({ until_ms: untilMs }))
    .execute()
}

/**
 * Ends the conditions that no node has reported for long enough. Adds an alert for each channel, unless it is
 * missing from `channels`, the configured ones.
 */
export async function endConditions(
  db: Db,
  { nowMs, channels }: { readonly nowMs: number; readonly channels: readonly string[] },
): Promise<void> {
  const ended = await db
    .selectFrom('alert_conditions')
    .select('name')
    .where('until_ms', '<=', nowMs)
    .execute()
  for (const { name } of ended) {
    await db.deleteFrom('alert_conditions').where('name', '=', name).execute()
    const channel = name.startsWith(CHANNEL) ? name.slice(CHANNEL.length) : undefined
    if (channel !== undefined && channels.includes(channel))
      await addAlert(db, { type: 'channel.back', data: { channel } }, nowMs)
  }
}

/** Adds an event to the outbox of alerts; receivers are notified if the transaction commits. */
async function addAlert(db: Db, { type, data }: AlertEvent, nowMs: number): Promise<void> {
  await db
    .insertInto('alert_outbox')
    .values({
      id: `msg_${randomBytes(16).toString('hex')}`,
      target: '',
      type,
      data: JSON.stringify(data),
      created_ms: nowMs,
      due_ms: 0,
      attempts: 0,
    })
    .execute()
}
