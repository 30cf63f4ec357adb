import { z } from 'zod'
import { GatewayError } from '../../errors.ts'

const EXPECTED = 'expected the id of a token'

/** The id of a token: a whole number from 1 to 2^53 − 1. */
export const tokenIdField = z.int({ error: EXPECTED }).positive({ error: EXPECTED })

/** The id of a token in a path, in digits. */
const writtenTokenId = z
  .string()
  .regex(/^[1-9]\d{0,15}$/, { error: EXPECTED })
  .transform(Number)
  .pipe(tokenIdField)

/** The parameters of a path with a token's id. */
export const tokenPath = z.object({ id: writtenTokenId })

/** The id of a key in the header `Gateway-Key`. */
export const namedKey = z.object({ 'Gateway-Key': writtenTokenId })

/** At least one id. Validated as a whole, so that a thousand invalid ids cause one issue. */
export const tokenIdsField = z
  .array(z.unknown().meta({ type: 'integer' }), { error: 'expected an array of ids of tokens' })
  .refine((ids) => ids.length > 0 && ids.every((id) => tokenIdField.safeParse(id).success), {
    error: 'expected ids of tokens, at least one',
  })
  .transform((ids) => ids as number[])

/** A body with ids of tokens. */
export const tokenIdsBody = z.object({ ids: tokenIdsField }, { error: 'expected an object with ids' })

/** Throws `not_found`, with the same message whether the token does not exist or belongs to another user. */
export function noOwnToken(): never {
  throw new GatewayError('not_found', 'you have no token with this id')
}
