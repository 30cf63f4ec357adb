import { z } from 'zod'
import { Role } from '../domain/role.ts'
import type { User } from '../domain/records/user.ts'
import { textField } from './input-fields.ts'
import type { AdministrationServices } from './services.ts'

// A filter that cannot be read must not remove everything, so that empty and unknown parameters are refused.
const id = z
  .string()
  .regex(/^\d{1,15}$/, { error: 'expected an id' })
  .transform(Number)
  .meta({ type: 'integer', minimum: 0 })
  .optional()

/** Which kept answers are removed; all that is given must apply. */
export const cacheRemovalQuery = z.strictObject({
  token: id,
  user: id,
  model: textField('expected the name of a model')
    .refine((name) => name !== '', { error: 'expected the name of a model' })
    .optional(),
})

/** The number of answers that were removed. */
export const cacheRemovalSchema = z.object({ removed: z.int() })

/** Removes kept answers, and records that in the audit log: an administrator those of all users, others their own. */
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
