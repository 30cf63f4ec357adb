import { z } from 'zod'
import type { Token } from '../../domain/records/token.ts'
import { GatewayError } from '../../errors.ts'
import type { Store } from '../../store/store.ts'
import { readInput } from '../read-input.ts'
import { TOKEN_ID } from './token-id.ts'

/** The input of operations on one token of any user. */
export const anyTokenInput = z.object({ id: TOKEN_ID.id }, { error: 'expected an object that names a token' })

/** The live token that an operator names by its id; throws `not_found`. `given` is validated here. */
export async function findToken(
  store: Pick<Store, 'read'>,
  given: z.input<typeof anyTokenInput>,
): Promise<Token> {
  const { id } = readInput(anyTokenInput, given)
  const token = await store.read('tokenById', { tokenId: id })
  return token ?? noToken(id)
}

/** Throws `not_found` for a token. */
export function noToken(id: number): never {
  throw new GatewayError('not_found', `there is no token with the id ${id}`)
}
