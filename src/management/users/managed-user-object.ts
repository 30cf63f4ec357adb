import { z } from 'zod'
import type { ManagedUser } from '../../domain/profile.ts'
import { profileObject, profileSchema } from './profile-object.ts'

/**
 * A user in responses to administrators: the profile, and fields that the user does not see. `docs/api.md:
 * Users`.
 */
export const managedUserSchema = profileSchema
  .omit({ has_password: true })
  .extend({ remark: z.string(), created_time: z.int() })

/** A user in responses to administrators. */
export type ManagedUserObject = z.output<typeof managedUserSchema>

/** Converts a stored user for an administrator. */
export function managedUserObject(user: ManagedUser): ManagedUserObject {
  const { has_password: _, ...profile } = profileObject(user)
  return { ...profile, remark: user.remark, created_time: user.createdTime }
}
