import { randomBytes } from 'node:crypto'
import { sql } from 'kysely'
import {
  type AlertType,
  type AlertEvent,
  type AlertThreshold,
  compareThresholds,
} from '../../domain/alert.ts'
import type { ChannelEventFacts } from '../../domain/channel-cause.ts'
import type { Db } from './operation.ts'

/** An event to be delivered to one receiver. */
export interface DueAlert {
  /** Id of the event, the same at every delivery attempt. */
  readonly id: string
  readonly type: string
  /** JSON of the event's data. */
  readonly data: string
  readonly createdMs: number
  /** Number of delivery attempts, including the one that has just begun. */
  readonly attempts: number
  /** Time of the first delivery attempt in Unix milliseconds. */
  readonly firstMs: number
}

/** A receiver of alerts, identified by its tag, with the types of events it wants. */
interface TargetTypes {
  readonly tag: string
  readonly types: readonly AlertType[]
}

/** Work that is due in the tables for alerts. */
export interface PendingAlerts {
  /** Whether there are events that have not been assigned to receivers yet. */
  readonly hasUnassigned: boolean
  /** Tags of the receivers for which a delivery attempt is due. */
  readonly due: readonly string[]
  /** Whether a condition, such as an open circuit breaker, has ended and must be removed. */
  readonly isConditionOver: boolean
  /** Whether another node delivers the alerts. */
  readonly isSenderElsewhere: boolean
}

/** Finds out whether alerts must be assigned or sent. `tags` are the tags of the receivers. */
export async function findPendingAlerts(
  db: Db,
  { node, nowMs, tags }: { readonly node: string; readonly nowMs: number; readonly tags: readonly string[] },
): Promise<PendingAlerts> {
  const first = (target: string): Promise<unknown> =>
    db
      .selectFrom('alert_outbox')
      .select('id')
      .where('target', '=', target)
      .where('due_ms', '<=', nowMs)
      .limit(1)
      .executeTakeFirst()
  const due: string[] = []
  for (const tag of tags) if (await first(tag)) due.push(tag)
  const over = await db
    .selectFrom('alert_conditions')
    .select('name')
    .where('until_ms', '<=', nowMs)
    .limit(1)
    .executeTakeFirst()
  return {
    hasUnassigned: (await first('')) !== undefined,
    due,
    isConditionOver: over !== undefined,
    isSenderElsewhere: await isSenderElsewhere(db, node, nowMs),
  }
}

/** Counts the waiting alerts of each receiver, by its tag. Receivers without waiting alerts are left out. */
export async function waitingAlerts(
  db: Db,
  { tags }: { readonly tags: readonly string[] },
): Promise<{ readonly tag: string; readonly count: number }[]> {
  if (tags.length === 0) return []
  const rows = await db
    .selectFrom('alert_outbox')
    .select((eb) => ['target', eb.fn.countAll<number>().as('count')])
    .where('target', 'in', tags)
    .groupBy('target')
    .execute()
  return rows.map(({ target, count }) => ({ tag: target, count }))
}

/**
 * Makes this node the sender of alerts until `untilMs` (Unix milliseconds), and replaces each unassigned
 * event by one row for each receiver. Resolves to the number of events; null if another node is the sender.
 * Only one node sends, because several nodes that claim the same rows would wait for each other.
 */
export async function assignAlerts(
  db: Db,
  given: {
    readonly node: string
    readonly nowMs: number
    readonly untilMs: number
    readonly targets: readonly TargetTypes[]
    readonly limit: number
  },
): Promise<number | null> {
  const { node, nowMs, untilMs, targets, limit } = given
  if (await isSenderElsewhere(db, node, nowMs)) return null
  await db
    .insertInto('alert_sender')
    .values({ id: 1, node, until_ms: untilMs })
    .onConflict((conflict) => conflict.column('id').doUpdateSet({ node, until_ms: untilMs }))
    .execute()
  const events = await db
    .selectFrom('alert_outbox')
    .select(['id', 'type', 'data', 'created_ms'])
    .where('target', '=', '')
    .orderBy('due_ms')
    .limit(limit)
    .execute()
  if (events.length === 0) return 0
  const copies = events.flatMap((event) =>
    targets
      .filter(({ types }) => types.some((type) => type === event.type))
      .map(({ tag }) => ({ ...event, target: tag, due_ms: nowMs, attempts: 0 })),
  )
  if (copies.length > 0) await db.insertInto('alert_outbox').values(copies).execute()
  const ids = events.map(({ id }) => id)
  await db.deleteFrom('alert_outbox').where('target', '=', '').where('id', 'in', ids).execute()
  return events.length
}

/**
 * Claims the alerts whose delivery to a receiver is due. An attempt without a result counts as lost at
 * `lostMs` (Unix milliseconds). Returns no alerts if another node is the sender.
 */
export async function claimAlerts(
  db: Db,
  given: {
    readonly node: string
    readonly nowMs: number
    readonly lostMs: number
    readonly tag: string
    readonly limit: number
  },
): Promise<DueAlert[]> {
  const { node, nowMs, lostMs, tag, limit } = given
  if (await isSenderElsewhere(db, node, nowMs)) return []
  const rows = await db
    .selectFrom('alert_outbox')
    .select(['id', 'type', 'data', 'created_ms', 'attempts', 'first_ms'])
    .where('target', '=', tag)
    .where('due_ms', '<=', nowMs)
    .orderBy('due_ms')
    .limit(limit)
    .execute()
  const alerts = rows.map((row) => ({
    id: row.id,
    type: row.type,
    data: row.data,
    createdMs: row.created_ms,
    attempts: row.attempts + 1,
    firstMs: row.first_ms ?? nowMs,
  }))
  for (const { id, attempts, firstMs } of alerts)
    await db
      .updateTable('alert_outbox')
      .set({ due_ms: lostMs, attempts, first_ms: firstMs })
      .where('target', '=', tag)
      .where('id', '=', id)
      .execute()
  return alerts
}

/**
 * Removes the alerts of a receiver whose delivery succeeded or was given up, and sets the time of the next
 * attempt for the others.
 */
export async function recordAlertResults(
  db: Db,
  given: {
    readonly tag: string
    readonly over: readonly string[]
    readonly failed: readonly { readonly id: string; readonly dueMs: number }[]
  },
): Promise<void> {
  const { tag, over, failed } = given
  if (over.length > 0)
    await db.deleteFrom('alert_outbox').where('target', '=', tag).where('id', 'in', over).execute()
  for (const { id, dueMs } of failed)
    await db
      .updateTable('alert_outbox')
      .set({ due_ms: dueMs })
      .where('target', '=', tag)
      .where('id', '=', id)
      .execute()
}

async function isSenderElsewhere(db: Db, node: string, nowMs: number): Promise<boolean> {
  const other = await db
    .selectFrom('alert_sender')
    .select('node')
    .where('node', '<>', node)
    .where('until_ms', '>', nowMs)
    .executeTakeFirst()
  return other !== undefined
}

/** Prefix of a condition that stands for a channel with an open circuit breaker. */
const CHANNEL = 'channel '
/** Prefix of a condition that stands for a channel without a usable key. */
const NO_KEY = 'no_key '
const OVERLOAD = 'overload'
/** Prefix of a condition that stands for a tool without a price. */
const UNPRICED = 'unpriced '
/** Prefix of a condition that stands for a usage that is not believed. */
const IMPLAUSIBLE = 'implausible '

/** Prefix of a condition that stands for a definition of a tool that is withheld. */
const WITHHELD = 'withheld '
/** Time in which a definition that is withheld is not reported again. */
const WITHHELD_MS = 366 * 86_400_000

/** Prefix of a condition that stands for a provider's rate limit that is nearly used up. */
const LOW_LIMIT = 'limit '

/** A tool offered in a request, or a service tier named in a response, for which no price is configured. */
interface UnpricedItem {
  readonly model: string
  readonly channel: string
  readonly tool?: string
  readonly tier?: string
}

/** What a node observed about the provider's rate limit for a channel and an upstream model. */
interface LimitCondition {
  readonly channel: string
  readonly model: string
  /** Whether enough of the limit was left at some time before it became low. */
  readonly hadEnough: boolean
  readonly low?: {
    readonly data: Extract<AlertEvent, { type: 'provider.limit' }>['data']
    /** Whether the limit became low on this node since its last report; false if it was low before. */
    readonly isNew: boolean
    /** Unix milliseconds at which the condition ends unless it is reported again. */
    readonly untilMs: number
  }
  /** Whether enough of the limit was left at some time after it was low. */
  readonly hasEnough: boolean
}

/** Facts about channels for their events, by name. */
export type AboutChannels = Readonly<Record<string, ChannelEventFacts>>

/** Conditions that a node observed since its last report. */
export interface ReportedConditions {
  readonly nowMs: number
  /** Names of the channels whose circuit breaker is open or half-open. */
  readonly opened: readonly string[]
  /** Names of the channels without a usable key. */
  readonly withoutKey?: readonly string[]
  /** Facts about the channels for their events, by name. */
  readonly about?: AboutChannels
  /**
   * Unix milliseconds at which a channel in `opened` or `withoutKey` counts as recovered unless it is reported
   * again.
   */
  readonly backAtMs: number
  /** Tools without a price that requests offered. */
  readonly unpriced?: {
    readonly tools: readonly UnpricedItem[]
    /** Unix milliseconds before which none of these tools is reported again. */
    readonly untilMs: number
  }
  /** Models and channels with a reported usage that is not believed. */
  readonly implausible?: {
    readonly usages: readonly { readonly model: string; readonly channel: string }[]
    /** Unix milliseconds before which none of these is reported again. */
    readonly untilMs: number
  }
  /** Tools of MCP servers with definitions that are not approved. */
  readonly withheld?: readonly Extract<AlertEvent, { type: 'mcp.tool_changed' }>['data'][]
  /** Rate limits of providers that have become nearly used up, or that have recovered. */
  readonly limits?: readonly LimitCondition[]
  /**
   * Reason for which calls were refused to shed load, and when (Unix milliseconds) the overload counts as
   * over; undefined if none were refused.
   */
  readonly overload: { readonly reason: string; readonly untilMs: number } | undefined
  /** A configuration file that this node has refused since its last report. */
  readonly refusedConfig?: Extract<AlertEvent, { type: 'config.refused' }>['data']
}

/**
 * Stores the conditions reported by a node. Adds an alert only for conditions that no node has reported yet,
 * because the nodes of a cluster notice the same failure at different times.
 */
export async function reportConditions(
  db: Db,
  {
    nowMs,
    opened,
    withoutKey = [],
    about = {},
    backAtMs,
    unpriced,
    implausible,
    withheld = [],
    limits = [],
    overload,
    refusedConfig,
  }: ReportedConditions,
): Promise<void> {
  if (refusedConfig) await addAlert(db, { type: 'config.refused', data: refusedConfig }, nowMs)
  for (const channel of opened) {
    const data = { channel, ...about[channel] }
    await report(db, CHANNEL + channel, backAtMs, nowMs, { type: 'channel.resting', data })
  }
  for (const channel of withoutKey) {
    const data = { channel, ...about[channel] }
    await report(db, NO_KEY + channel, backAtMs, nowMs, { type: 'channel.no_key', data })
  }
  for (const tool of unpriced?.tools ?? []) {
    const { model, channel, tool: type, tier } = tool
    const name = `${UNPRICED}${JSON.stringify(tier === undefined ? [model, channel, type] : [model, { tier }])}`
    await report(db, name, unpriced?.untilMs ?? nowMs, nowMs, { type: 'price.incomplete', data: tool }, true)
  }
  for (const { model, channel } of implausible?.usages ?? []) {
    const name = `${IMPLAUSIBLE}${JSON.stringify([model, channel])}`
    const event = { type: 'usage.implausible', data: { model, channel } } as const
    await report(db, name, implausible?.untilMs ?? nowMs, nowMs, event, true)
  }
  for (const data of withheld) {
    const name = `${WITHHELD}${JSON.stringify([data.server, data.tool, data.digest])}`
    await report(db, name, nowMs + WITHHELD_MS, nowMs, { type: 'mcp.tool_changed', data }, true)
  }
  for (const limit of limits) await reportLimit(db, limit, nowMs)
  if (!overload) return
  const { reason, untilMs } = overload
  await report(db, OVERLOAD, untilMs, nowMs, { type: 'gateway.overloaded', data: { reason } })
}

async function reportLimit(
  db: Db,
  { channel, model, hadEnough, low, hasEnough }: LimitCondition,
  nowMs: number,
): Promise<void> {
  const name = `${LOW_LIMIT}${JSON.stringify([channel, model])}`
  const end = (): Promise<unknown> => db.deleteFrom('alert_conditions').where('name', '=', name).execute()
  if (hadEnough) await end()
  if (low?.isNew) await report(db, name, low.untilMs, nowMs, { type: 'provider.limit', data: low.data })
  else if (low)
    // Another node may have removed the condition, because it saw that enough of the limit was left. The
    // update then finds no row.
    await db
      .updateTable('alert_conditions')
      .set({ until_ms: low.untilMs })
      .where('name', '=', name)
      .where('until_ms', '<', low.untilMs)
      .execute()
  if (hasEnough) await end()
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
  // An alert is added only when a condition begins. A condition that is reported for a fixed time begins
  // again after that time.
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
 * Ends the conditions that no node has reported again in time. If such a condition was the open circuit
 * breaker of a channel in `channels` (the configured ones), adds an alert that the channel has recovered.
 */
export async function endConditions(
  db: Db,
  {
    nowMs,
    channels,
    about = {},
  }: { readonly nowMs: number; readonly channels: readonly string[]; readonly about?: AboutChannels },
): Promise<void> {
  const ended = await db
    .selectFrom('alert_conditions')
    .select('name')
    .where('until_ms', '<=', nowMs)
    .execute()
  for (const { name } of ended) {
    await db.deleteFrom('alert_conditions').where('name', '=', name).execute()
    const prefix = [CHANNEL, NO_KEY].find((one) => name.startsWith(one))
    const channel = prefix === undefined ? undefined : name.slice(prefix.length)
    if (channel !== undefined && channels.includes(channel) && !(await hasTrouble(db, channel)))
      await addAlert(db, { type: 'channel.back', data: { channel, ...about[channel] } }, nowMs)
  }
}

/** Whether another condition of the channel lasts, so that it is not back yet. */
async function hasTrouble(db: Db, channel: string): Promise<boolean> {
  const found = await db
    .selectFrom('alert_conditions')
    .select('name')
    .where('name', 'in', [CHANNEL + channel, NO_KEY + channel])
    .executeTakeFirst()
  return found !== undefined
}

/**
 * Adds an event to the events that wait for delivery. Receivers are informed only if the transaction commits.
 */
export async function addAlert(db: Db, { type, data }: AlertEvent, nowMs: number): Promise<void> {
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

/** The events that receivers subscribe to. */
export interface AlertSubscriptions {
  /** Tags of the receivers. */
  readonly tags: readonly string[]
  /**
   * Thresholds at which events are detected, sorted by type of event. Events without a receiver are left out.
   */
  readonly thresholds: readonly AlertThreshold[]
}

/** Reads the stored thresholds, sorted by type of event. */
async function alertThresholds(db: Db): Promise<AlertThreshold[]> {
  const rows = await db.selectFrom('alert_thresholds').selectAll().execute()
  return rows.map(({ type, threshold }) => ({ type: type as AlertType, threshold })).sort(compareThresholds)
}

/** Whether the database contains anything about alerts: thresholds, conditions, or waiting alerts. */
export async function hasAlertState(db: Db): Promise<boolean> {
  for (const table of ['alert_thresholds', 'alert_conditions', 'alert_outbox'] as const) {
    const row = await db.selectFrom(table).select(sql`1`.as('one')).limit(1).executeTakeFirst()
    if (row) return true
  }
  return false
}

/** Stores the subscriptions of the receivers, and removes the alerts for receivers that no longer exist. */
export async function subscribeAlerts(db: Db, { tags, thresholds }: AlertSubscriptions): Promise<void> {
  if (JSON.stringify(await alertThresholds(db)) !== JSON.stringify(thresholds)) {
    await db.deleteFrom('alert_thresholds').execute()
    if (thresholds.length > 0)
      await db
        .insertInto('alert_thresholds')
        .values([...thresholds])
        .execute()
  }
  // Without receivers of low quotas, it is not detected when a quota is high again. So the users whose low
  // quota was reported are forgotten.
  if (thresholds.every(({ type }) => type !== 'quota.low')) await db.deleteFrom('low_quotas_told').execute()
  // Keeps unassigned events (without a target); they go to the receivers that exist when they are assigned.
  const present = tags.length > 0 ? ['', ...tags] : []
  const removal = db.deleteFrom('alert_outbox')
  await (present.length > 0 ? removal.where('target', 'not in', present) : removal).execute()
  if (tags.length === 0) await db.deleteFrom('alert_conditions').execute()
}
