import { randomBytes } from 'node:crypto'
import type { AlertEvent } from '../../domain/alert.ts'
import type { Db } from './operation.ts'

/** Adds an event to the outbox of alerts: receivers are told of it if the transaction is committed. */
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
