import { managedInput, manageUser } from '../../management/users/manage-user.ts'
import { managedUserObject, managedUserSchema } from '../../management/users/managed-user-object.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Users`. */
export const manage = defineEndpoint({
  method: 'POST',
  path: '/api/user/manage',
  area: 'management',
  access: 'admin',
  summary: 'Disable, enable, delete, promote or demote a user, or change its quota',
  errorStatuses: [404],
  body: managedInput,
  responseBody: managedUserSchema.optional(),
  async handle({ user, body, parts }) {
    const managed = await manageUser(parts, body, user)
    return managed && managedUserObject(parts, managed)
  },
})
