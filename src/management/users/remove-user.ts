import type { z } from 'zod'
import { OPERATOR } from '../authority.ts'
import type { ManagementParts } from '../parts.ts'
import { readInput, userInput } from '../read-input.ts'
import { deleteUser } from './delete-user.ts'
import { findUser } from './find-user.ts'

/** Deletes a user on behalf of the operator; the last user with role 100 is refused. */
export async function removeUser(
  parts: ManagementParts,
  given: z.input<typeof userInput>,
): Promise<{ readonly id: number; readonly username: string }> {
  const { id, username } = await findUser(parts.store, readInput(userInput, given).user)
  await deleteUser(parts, id, OPERATOR)
  return { id, username }
}
