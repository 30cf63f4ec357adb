import { z } from 'zod'
import { deleteUser } from '../../management/users/delete-user.ts'
import { userIdText } from '../../management/users/user-fields.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Users`. */
export const removeUser = defineEndpoint({
  method: 'DELETE',
  path: '/api/user/:id',
  area: 'management',
  access: 'admin',
  summary: 'Delete a user, and all its tokens',
  params: z.object({ id: userIdText }),
  async handle({ user, params, parts }) {
    return deleteUser(parts, params.id, user)
  },
})
