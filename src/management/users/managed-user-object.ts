import { z } from 'zod'
import type { ManagedUser } from '../../domain/profile.ts'
import { profileObject, profileSchema } from './profile-object.ts'

/** A user as administrators see it: the profile, and what its owner is not told. `docs/api.md: Users`. */
export const managedUserSchema = profileSchema.extend({ remark: z.string(), created_time: z.int() })

/** A user, shown to an administrator. */
export type ManagedUserObject = z.output<typeof managedUserSchema>

/** A stored user, shown to an administrator. */
export function managedUserObject(user: ManagedUser): ManagedUserObject {
  return { ...profileObject(user), remark: user.remark, created_time: user.createdTime }
}
