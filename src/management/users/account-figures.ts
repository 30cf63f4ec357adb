import type { Token } from '../../domain/token.ts'
import type { User } from '../../domain/user.ts'
import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'

/**
 * A token and its user with the ledger's figures: every charge that was made up to now, and nothing of what
 * calls under way hold. It is read behind all writes that are queued; `token_deleted` if there is no such
 * token any more.
 */
export async function accountFigures(
  { store }: Pick<ManagementParts, 'store'>,
  tokenId: number,
): Promise<{ readonly token: Token; readonly user: User }> {
  const account = await store.write('loadAccount', { tokenId })
  if (!account) throw new GatewayError('token_deleted', 'this API key was deleted')
  return account
}

/** The Unix second at which a token expires; 0 if it never does. */
export function expiresAt({ expiredTime }: Token): number {
  return expiredTime === -1 ? 0 : expiredTime
}
