import type { Db } from './operation.ts'

/** Returns when users last made a settled call, or a request with a session, in Unix seconds. */
export async function lastActive(
  db: Db,
  { userIds }: { readonly userIds: readonly number[] },
): Promise<{ readonly userId: number; readonly at: number }[]> {
  if (userIds.length === 0) return []
  const calls = await db
    .selectFrom('tokens')
    .select((eb) => ['user_id', eb.fn.max<number>('accessed_time').as('at')])
    .where('user_id', 'in', userIds)
    .groupBy('user_id')
    .execute()
  const sessions = await db
    .selectFrom('sessions')
    .select((eb) => [
      'user_id',
      eb.fn.max<number>('last_used').as('used'),
      eb.fn.max<number>('created_time').as('begun'),
    ])
    .where('user_id', 'in', userIds)
    .groupBy('user_id')
    .execute()
  return [
    ...calls.map(({ user_id, at }) => ({ userId: user_id, at })),
    ...sessions.map(({ user_id, used, begun }) => ({ userId: user_id, at: Math.max(used, begun) })),
  ]
}
