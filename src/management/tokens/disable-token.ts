import { z } from 'zod'
import { TOKEN_STATUS } from '../../domain/token.ts'
import { GatewayError } from '../../errors.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput } from '../read-input.ts'
import { switchToken } from './switch-token.ts'
import { tokenIdField } from './token-id.ts'
import type { TokenObject } from './token-object.ts'

const INPUT = z.object({ id: tokenIdField }, { error: 'expected an object that names a token' })

/** Disables a token of any user: its key is refused from the next call on; running calls go on. */
export async function disableToken(
  parts: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<TokenObject> {
  const { id } = readInput(INPUT, given)
  const token = await parts.store.read('tokenById', { tokenId: id })
  if (!token) throw new GatewayError('not_found', `there is no token with the id ${id}`)
  return switchToken(parts, { user: token.userId, id, status: TOKEN_STATUS.disabled })
}
