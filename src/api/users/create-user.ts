import { makeUser, newUserInput } from '../../management/users/create-user.ts'
import { managedUserObject, managedUserSchema } from '../../management/users/managed-user-object.ts'
import { passwordField } from '../../management/users/user-fields.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Users`. */
export const createUser = defineEndpoint({
  method: 'POST',
  path: '/api/user/',
  area: 'management',
  access: 'admin',
  summary: 'Create a user who can log in',
  body: newUserInput.extend({ password: passwordField }),
  responseBody: managedUserSchema,
  async handle({ user, body, parts }) {
    return managedUserObject(parts, await makeUser(parts, body, user))
  },
})
