import type { AlertType } from '../../domain/alert.ts'
import type { Db } from './operation.ts'

/** Event for one receiver. */
export interface DueAlert {
  /** Id of the event, the same in every attempt. */
  readonly id: string
  readonly type: string
  /** JSON of the event's data. */
  readonly data: string
  readonly createdMs: number
  /** Attempts, the claimed one included. */
  readonly attempts: number
  /** Time of the first attempt. */
  readonly firstMs: number
}

/** Receiver by its tag, with the types of events that it gets. */
interface TargetTypes {
  readonly tag: string
  readonly types: readonly AlertType[]
}

/** Work that waits in the tables of alerts. */
export interface AlertWork {
  /** True if there are events that are not assigned to receivers yet. */
  readonly isUnspread: boolean
  /** Tags of the receivers for which an attempt is due. */
  readonly due: readonly string[]
  /** True if conditions have ended and wait to be removed. */
  readonly isConditionOver: boolean
  /** True if another node delivers the alerts. */
  readonly isSenderElsewhere: boolean
}

/** Reads what has to be done; `tags` are those of the receivers. */
export async function alertWork(
  db: Db,
  { node, nowMs, tags }: { readonly node: string; readonly nowMs: number; readonly tags: readonly string[] },
): Promise<AlertWork> {
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
    isUnspread: (await first('')) !== undefined,
    due,
    isConditionOver: over !== undefined,
    isSenderElsewhere: await isSenderElsewhere(db, node, nowMs),
  }
}

/**
 * Makes this node the sender until `untilMs`, and replaces each event that is not assigned yet by one for
 * each receiver. Resolves to the number of events; null if another node is the sender. One node sends for
 * all, because nodes that claim the same rows would wait for each other.
 */
export async function spreadAlerts(
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

/** Claims attempts that are due for a receiver, until `lostMs`; none if another node is the sender. */
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

/** Removes alerts of a receiver that are delivered or given up, and sets the next attempt of others. */
export async function noteAlerts(
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
