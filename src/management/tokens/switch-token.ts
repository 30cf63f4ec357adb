import { z } from 'zod'
import { TOKEN_STATUS } from '../../domain/records/token.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput } from '../read-input.ts'
import { noOwnToken, tokenInput } from './token-id.ts'
import { maskedToken, type TokenObject } from './token-object.ts'

/** The statuses that a token can be given. */
export const switchedStatusField = z.literal([TOKEN_STATUS.enabled, TOKEN_STATUS.disabled], {
  error: 'expected 1 (enabled) or 2 (disabled)',
})

const INPUT = tokenInput.extend({ status: switchedStatusField })

/**
 * Changes the status of one of the user's tokens, and nothing else; running calls are not affected. Enabling
 * an expired or exhausted token is `invalid_request`. `docs/api.md: States and transitions`. `given` is
 * validated here.
 */
export async function switchToken(parts: ManagementParts, given: unknown): Promise<TokenObject> {
  const { store, apiKeys, nowMs } = parts
  const { user: userId, id: tokenId, status } = readInput(INPUT, given)
  const token =
    (await store.write('switchToken', { tokenId, userId, status, nowMs: nowMs() })) ?? noOwnToken()
  apiKeys.forget(tokenId)
  return maskedToken(parts, token)
}
