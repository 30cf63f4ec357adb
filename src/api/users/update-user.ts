import { changedUserInput, changeUser } from '../../management/users/change-user.ts'
import { managedUserObject, managedUserSchema } from '../../management/users/managed-user-object.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Users`. */
export const updateUser = defineEndpoint({
  method: 'PUT',
  path: '/api/user/',
  area: 'management',
  access: 'admin',
  summary: 'Change fields of a user',
  errorStatuses: [404, 409],
  body: changedUserInput,
  responseBody: managedUserSchema,
  async handle({ user, body, parts }) {
    return managedUserObject(parts, await changeUser(parts, body, user))
  },
})
