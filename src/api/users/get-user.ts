import { z } from 'zod'
import { noUser } from '../../management/users/find-user.ts'
import { managedUserObject, managedUserSchema } from '../../management/users/managed-user-object.ts'
import { userIdText } from '../../management/users/user-fields.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Users`. */
export const getUser = defineEndpoint({
  method: 'GET',
  path: '/api/user/:id',
  area: 'management',
  access: 'admin',
  summary: 'One user',
  params: z.object({ id: userIdText }),
  responseBody: managedUserSchema,
  async handle({ params: { id: userId }, parts }) {
    return managedUserObject(parts, (await parts.store.read('managedUser', { userId })) ?? noUser(userId))
  },
})
