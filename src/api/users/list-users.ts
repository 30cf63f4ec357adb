import { findUsers, userPageSchema } from '../../management/users/find-users.ts'
import { pageQuery } from '../../management/page.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Users`. */
export const listUsers = defineEndpoint({
  method: 'GET',
  path: '/api/user/',
  area: 'management',
  access: 'admin',
  summary: 'All users, a page of them, newest first',
  query: pageQuery,
  responseBody: userPageSchema,
  async handle({ query, parts }) {
    return findUsers(parts, query)
  },
})
