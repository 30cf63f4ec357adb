import type { Token } from '../../domain/records/token.ts'
import type { User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'

/**
 * A token and its user with the ledger's balances: all charges so far, without open holds. The read waits for
 * all queued writes. Throws `token_deleted` if the token is gone.
 */
export async function accountFigures(
  { store }: Pick<ManagementParts, 'store'>,
  tokenId: number,
): Promise<{ readonly token: Token; readonly user: User }> {
  const account = await store.write('loadAccount', { tokenId })
  if (!account) throw new GatewayError('token_deleted', 'this API key was deleted')
  return account
}

/** The expiry of a token in Unix seconds; 0 = never. */
export function expiresAt({ expired_time }: Token): number {
  return expired_time === -1 ? 0 : expired_time
}
