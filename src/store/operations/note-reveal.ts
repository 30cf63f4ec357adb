import type { Origin } from '../../domain/audit.ts'
import { appendEntries } from '../audit/append.ts'
import type { Db } from './operation.ts'

/** Secrets that are about to be revealed. */
export interface Reveal {
  readonly kind: 'key' | 'channel'
  readonly ids: readonly number[]
  /** Owner of the tokens; those of other users are not revealed. */
  readonly userId?: number
  readonly origin?: Origin
}

/** Adds reveals of secrets to the audit log. Written before the secret is read: none is shown unlogged. */
export async function noteReveal(db: Db, { kind, ids, userId, origin }: Reveal): Promise<void> {
  if (!origin || ids.length === 0) return
  const rows =
    kind === 'channel'
      ? await db.selectFrom('channels').select(['id', 'name']).where('id', 'in', ids).orderBy('id').execute()
      : await db
          .selectFrom('tokens')
          .select(['id', 'name'])
          .where('id', 'in', ids)
          .where('user_id', '=', userId ?? 0)
          .where('deleted_time', 'is', null)
          .orderBy('id')
          .execute()
  const entries = rows.map(({ id, name }) => ({
    action: `${kind}.reveal`,
    object: { kind, id, name },
    changes: [],
  }))
  await appendEntries(db, origin, entries)
}
