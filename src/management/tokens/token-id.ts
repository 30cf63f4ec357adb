import { z } from 'zod'
import { GatewayError } from '../../errors.ts'
import { idFields } from '../id-fields.ts'

/** The id of a token. */
export const TOKEN_ID = idFields('token', 'expected an array of ids of tokens')

/** The id of a key in the header `Gateway-Key`. */
export const namedKey = z.object({ 'Gateway-Key': TOKEN_ID.written })

/** Throws `not_found`, with the same message whether the token does not exist or belongs to another user. */
export function noOwnToken(): never {
  throw new GatewayError('not_found', 'you have no token with this id')
}
