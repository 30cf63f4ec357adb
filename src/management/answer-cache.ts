import { z } from 'zod'
import { Role } from '../domain/role.ts'
import type { User } from '../domain/records/user.ts'
import { textField } from './input-fields.ts'
import type { AdministrationServices } from './services.ts'

// Empty and unknown parameters are refused, because a filter that is ignored would remove all answers.
const id = z
  .string()
  .regex(/^\d{1,15}$/, { error: 'expected an id' })
  .transform(Number)
  .meta({ type: 'integer', minimum: 0 })
  .optional()

/** Selects the cached answers to remove: those that match all given parameters. */
export const cacheRemovalQuery = z.strictObject({
  token: id,
  user: id,
  model: textField('expected the name of a model')
    .refine((name) => name !== '', { error: 'expected the name of a model' })
    .optional(),
})

/** The number of answers that were removed. */
export const cacheRemovalSchema = z.object({ removed: z.int() })

/**
 * Removes cached answers, and records that in the audit log. Administrators may remove answers of all users,
 * others only their own.
 */
export async function removeKeptAnswers(
  { answers, store }: Pick<AdministrationServices, 'answers' | 'store'>,
  { token: tokenId, user, model }: z.output<typeof cacheRemovalQuery>,
  { id: ownId, role }: User,
): Promise<z.output<typeof cacheRemovalSchema>> {
  const isAdmin = role >= Role.admin
  const userId = isAdmin ? user : ownId
  const isOthers = !isAdmin && user !== undefined && user !== ownId
  const removed = isOthers ? 0 : await answers.remove({ kind: 'cache', userId, tokenId, model })
  await store.write('recordCacheRemoval', { userId, tokenId, model, removed })
  return { removed }
}
