import type { Token } from '../../domain/token.ts'
import { GatewayError } from '../../errors.ts'
import type { Secrets } from '../secrets.ts'
import { createToken, type NewToken } from './create-token.ts'
import type { Db } from './operation.ts'

/**
 * Makes a token for a user who is there and has fewer than `most` live ones. Counted where it is written, so
 * that of two that come together at the limit one is refused.
 */
export async function createUserToken(
  db: Db,
  { token, most }: { readonly token: NewToken; readonly most: number },
  secrets: Secrets,
): Promise<Token> {
  // Changes nothing, but holds the user's row until the end of the transaction, where databases write side by
  // side.
  const user = await db
    .updateTable('users')
    .set((eb) => ({ status: eb.ref('status') }))
    .where('id', '=', token.userId)
    .where('deleted_time', 'is', null)
    .returning('id')
    .executeTakeFirst()
  if (!user) throw new GatewayError('not_found', 'the user is gone')
  const { count } = await db
    .selectFrom('tokens')
    .select((eb) => eb.fn.countAll<number>().as('count'))
    .where('user_id', '=', user.id)
    .where('deleted_time', 'is', null)
    .executeTakeFirstOrThrow()
  if (count >= most) {
    throw new GatewayError(
      'invalid_request',
      `a user may have ${most} tokens at most (max_user_tokens), and this one has ${count}`,
    )
  }
  return createToken(db, token, secrets)
}
