import type { Origin } from '../../domain/audit.ts'
import { appendEntries } from '../audit/append.ts'
import type { Db } from './operation.ts'

const HOUR_MS = 3_600_000
/** Most refusals of one hour that are logged: guesses from many addresses must not fill the disk. */
const MAX_PER_HOUR = 1_000

/** Sign-in that was refused. */
export interface RefusedSignIn {
  /** Name that was sent; undefined for other credentials. */
  readonly username: string | undefined
  readonly origin?: Origin
}

/**
 * Adds a refused sign-in to the audit log. A name that no user has is left out: people type passwords into
 * the wrong field.
 */
export async function noteRefusedSignIn(db: Db, { username = '', origin }: RefusedSignIn): Promise<void> {
  if (!origin) return
  const { count } = await db
    .selectFrom('audit_log')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('at_ms', '>', origin.atMs - HOUR_MS)
    .where('action', '=', 'session.refuse')
    .executeTakeFirstOrThrow()
  if (count >= MAX_PER_HOUR) return
  const user = await db
    .selectFrom('users')
    .select(['id', 'username'])
    .where('username', '=', username)
    .where('deleted_time', 'is', null)
    .executeTakeFirst()
  const name = user?.username ?? ''
  const entry = {
    action: 'session.refuse',
    object: { kind: 'session', id: null, name },
    changes: [],
  } as const
  await appendEntries(db, origin, [{ ...entry, actor: { id: user?.id ?? 0, name } }])
}
