import { z } from 'zod'
import { TOKEN_STATUS } from '../../domain/records/token.ts'
import type { ManagementParts } from '../parts.ts'
import { noOwnToken, TOKEN_ID } from './token-id.ts'
import { maskedToken, type TokenObject } from './token-object.ts'

/** The statuses that a token can be given. */
const switchedStatusField = z.literal([TOKEN_STATUS.enabled, TOKEN_STATUS.disabled], {
  error: 'expected 1 (enabled) or 2 (disabled)',
})

/** The token to switch, and its status. */
export const switchedToken = z.object(
  { id: TOKEN_ID.id, status: switchedStatusField },
  { error: 'expected an object with the id of a token and a status' },
)

/**
 * Changes the status of one of the user's tokens, and nothing else; running calls are not affected. Enabling
 * an expired or exhausted token is `invalid_request`. `docs/api.md: States and transitions`.
 */
export async function switchToken(
  parts: ManagementParts,
  { user: userId, id: tokenId, status }: z.output<typeof switchedToken> & { readonly user: number },
): Promise<TokenObject> {
  const { store, apiKeys, nowMs } = parts
  const token =
    (await store.write('switchToken', { tokenId, userId, status, nowMs: nowMs() })) ?? noOwnToken()
  apiKeys.forget(tokenId)
  return maskedToken(parts, token)
}
