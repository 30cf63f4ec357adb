import type { z } from 'zod'
import { TOKEN_STATUS } from '../../domain/records/token.ts'
import type { ManagementParts } from '../parts.ts'
import { type anyTokenInput, findToken } from './find-token.ts'
import { switchToken } from './switch-token.ts'
import type { TokenObject } from './token-object.ts'

/** Disables a token of any user: its key is refused from the next call on; running calls go on. */
export async function disableToken(
  parts: ManagementParts,
  given: z.input<typeof anyTokenInput>,
): Promise<TokenObject> {
  const { id, user_id: user } = await findToken(parts.store, given)
  return switchToken(parts, { user, id, status: TOKEN_STATUS.disabled })
}

/** Enables a token of any user. An expired or exhausted one is refused with `invalid_request`. */
export async function enableToken(
  parts: ManagementParts,
  given: z.input<typeof anyTokenInput>,
): Promise<TokenObject> {
  const { id, user_id: user } = await findToken(parts.store, given)
  return switchToken(parts, { user, id, status: TOKEN_STATUS.enabled })
}
