import { z } from 'zod'
import { GatewayError } from '../../errors.ts'

const EXPECTED = 'expected the id of a token'

/** The id of a token: a whole number from 1 to 2^53 − 1. */
export const tokenIdField = z.int({ error: EXPECTED }).positive({ error: EXPECTED })

/** The same as a path has it, in digits. */
const writtenTokenId = z
  .string()
  .regex(/^[1-9]\d{0,15}$/, { error: EXPECTED })
  .transform(Number)
  .pipe(tokenIdField)

/** Of a path with a token in it. */
export const tokenPath = z.object({ id: writtenTokenId })

/** The input of operations that are about one token of a user, who is asked for by id alone. */
export const tokenInput = z.object(
  { user: z.int().positive(), id: tokenIdField },
  { error: 'expected an object that names a token' },
)

/** At least one id. Looked at in one piece, so that a thousand mistakes are told as one. */
export const tokenIdsField = z
  .array(z.unknown(), { error: 'expected an array of ids of tokens' })
  .refine((ids) => ids.length > 0 && ids.every((id) => tokenIdField.safeParse(id).success), {
    error: 'expected ids of tokens, at least one',
  })
  .pipe(z.array(tokenIdField))

/** A body that names tokens. */
export const tokenIdsBody = z.object({ ids: tokenIdsField }, { error: 'expected an object with ids' })

/** Says that the caller has no such token, in the same words where nobody and where somebody else has it. */
export function noOwnToken(): never {
  throw new GatewayError('not_found', 'you have no token with this id')
}
