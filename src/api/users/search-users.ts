import { findUsers, userPageSchema, userSearchInput } from '../../management/users/find-users.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Users`. */
export const searchUsers = defineEndpoint({
  method: 'GET',
  path: '/api/user/search',
  area: 'management',
  access: 'admin',
  summary: 'Users by a part of their name or e-mail address, by id, by group',
  limit: 'search',
  errorStatuses: [400],
  query: userSearchInput,
  responseBody: userPageSchema,
  async handle({ query, parts }) {
    return findUsers(parts, query)
  },
})
