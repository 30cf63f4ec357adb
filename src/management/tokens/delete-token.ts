import type { z } from 'zod'
import type { ManagementParts } from '../parts.ts'
import { deleteTokens } from './delete-tokens.ts'
import { type anyTokenInput, findToken, noToken } from './find-token.ts'

/** Deletes a token of any user: its key is refused from the next call on; running calls go on. */
export async function deleteToken(
  parts: ManagementParts,
  given: z.input<typeof anyTokenInput>,
): Promise<{ readonly id: number; readonly name: string }> {
  const { id, user_id: user, name } = await findToken(parts.store, given)
  if ((await deleteTokens(parts, { user, ids: [id] })) === 0) noToken(id)
  return { id, name }
}
