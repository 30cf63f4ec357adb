import { z } from 'zod'
import type { ManagedUser, User } from '../../domain/records/user.ts'
import { GatewayError } from '../../errors.ts'
import { fairQueueKey } from '../authority.ts'
import { noUser } from './find-user.ts'
import type { ManagementParts } from '../parts.ts'
import { bodyShape, storedFields } from '../record-schemas.ts'
import { claimedPasswordField, keepAccessTokensField, OWN_FIELDS, passwordField } from './user-fields.ts'

/** The fields that users may change about themselves; null counts as absent. */
export const ownProfileInput = z.object(
  {
    ...bodyShape(OWN_FIELDS, 'change'),
    password: passwordField.nullish(),
    original_password: claimedPasswordField.nullish(),
    keep_access_tokens: keepAccessTokensField.nullish(),
  },
  { error: 'expected an object with the fields to change' },
)

/**
 * Changes the given fields. A new password requires the current one, ends all sessions of the user, including
 * this one, and revokes the access token. A first password ends all sessions except `session`, that of the
 * request.
 */
export async function changeOwnProfile(
  parts: ManagementParts,
  { id: userId, username }: User,
  input: z.output<typeof ownProfileInput>,
  session: string | undefined,
): Promise<ManagedUser> {
  const { password, original_password: original } = input
  const change =
    typeof password === 'string' ? await newPassword(parts, { userId, username }, password, original) : {}
  const user = await parts.ledger.changeUser({
    userId,
    fields: { ...storedFields(OWN_FIELDS, input), passwordHash: change.passwordHash },
    passwordWas: change.passwordWas,
    keptSession: change.passwordWas === null ? session : undefined,
    keepAccessTokens: input.keep_access_tokens ?? false,
  })
  return user ?? noUser(userId)
}

async function newPassword(
  { store, passwords }: ManagementParts,
  { userId, username }: { readonly userId: number; readonly username: string },
  password: string,
  original: string | null | undefined,
): Promise<{ readonly passwordHash?: string; readonly passwordWas?: string | null }> {
  const { passwordHash: passwordWas } = (await store.read('credentials', { username })) ?? noUser(username)
  const queue = fairQueueKey({ id: userId })
  if (passwordWas === null) return { passwordHash: await passwords.hash(password, queue), passwordWas }
  if (typeof original !== 'string' || !(await passwords.verify(passwordWas, original, queue))) {
    throw new GatewayError('invalid_request', 'original_password: expected your present password')
  }
  return { passwordHash: await passwords.hash(password, queue), passwordWas }
}
