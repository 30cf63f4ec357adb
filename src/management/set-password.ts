import { z } from 'zod'
import { OPERATOR, queueOf } from './authority.ts'
import { findUser, noUser } from './find-user.ts'
import type { ManagementParts } from './parts.ts'
import { ofUser, readInput } from './read-input.ts'
import { passwordField } from './user-fields.ts'
import { type UserObject, userObject } from './user-object.ts'

const INPUT = ofUser.extend({ password: passwordField })

/** Gives a user a password, in the place of any other; whoever was logged in as that user is not any more. */
export async function setPassword(
  { store, ledger, passwords }: ManagementParts,
  given: z.input<typeof INPUT>,
): Promise<UserObject> {
  const { user: who, password } = readInput(INPUT, given)
  const { id: userId } = await findUser(store, who)
  const passwordHash = await passwords.hash(password, queueOf(OPERATOR))
  return userObject((await ledger.changeUser({ userId, fields: { passwordHash } })) ?? noUser(who))
}
