import type { NewToken, Token } from '../../domain/records/token.ts'
import { GatewayError } from '../../errors.ts'
import type { Secrets } from '../secrets.ts'
import { createToken } from './create-token.ts'
import type { Db } from './operation.ts'

/**
 * Creates a token for an existing user with fewer than `maxTokens` live ones. Counts in the same transaction,
 * so that concurrent requests cannot exceed the limit.
 */
export async function createUserToken(
  db: Db,
  { token, maxTokens }: { readonly token: NewToken; readonly maxTokens: number },
  secrets: Secrets,
): Promise<Token> {
  // Changes nothing; locks the user's row where the database runs writes concurrently.
  const user = await db
    .updateTable('users')
    .set((eb) => ({ status: eb.ref('status') }))
    .where('id', '=', token.user_id)
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
  if (count >= maxTokens) {
    throw new GatewayError(
      'invalid_request',
      `a user may have ${maxTokens} tokens at most (max_user_tokens), and this one has ${count}`,
    )
  }
  return createToken(db, token, secrets)
}
