import { z } from 'zod'
import { maskedKey } from '../domain/masked-key.ts'
import type { Token } from '../domain/token.ts'
import { TOKEN_STATUS } from '../domain/token.ts'
import { GatewayError } from '../errors.ts'
import type { ManagementParts } from './parts.ts'
import { readInput } from './read-input.ts'
import { type TokenObject, tokenObject } from './token-object.ts'

const SAYS = 'expected the id of a token'

const INPUT = z.object(
  { id: z.int({ error: SAYS }).positive({ error: SAYS }) },
  { error: 'expected an object that names a token' },
)

/** The key is refused from the next call on, whatever its status was; calls under way go on. */
export async function disableToken(
  parts: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<TokenObject> {
  const { store, apiKeys, nowMs } = parts
  const { id: tokenId } = readInput(INPUT, given)
  const found = (await store.read('tokenById', { tokenId })) ?? noToken(tokenId)
  await refuseDeclared(parts, found)
  const token = (await store.write('disableToken', { tokenId })) ?? noToken(tokenId)
  apiKeys.forget(tokenId)
  const key = await store.read('revealKey', { tokenId, userId: token.userId })
  return tokenObject(token, maskedKey(`sk-${key ?? ''}`), nowMs())
}

async function refuseDeclared({ store, seeds }: ManagementParts, { userId, name }: Token): Promise<void> {
  const user = await store.read('userById', userId)
  const seed = seeds().find(({ username }) => username === user?.username)
  const declared = seed?.tokens.find((token) => token.name === name)?.status
  if (declared === undefined || declared === TOKEN_STATUS.disabled) return
  throw new GatewayError(
    'invalid_request',
    `the status of the token "${name}" is declared in gateway.yaml, and applied at every reading: change it there`,
  )
}

function noToken(id: number): never {
  throw new GatewayError('not_found', `there is no token with the id ${id}`)
}
