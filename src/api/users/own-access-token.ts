import { z } from 'zod'
import { issueAccessToken } from '../../management/users/issue-access-token.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Authentication`. */
export const ownAccessToken = defineEndpoint({
  method: 'GET',
  hasEffect: true,
  path: '/api/user/token',
  area: 'management',
  access: 'account',
  summary: "A new access token, which replaces the account's old one",
  limit: 'critical',
  cache: 'never',
  responseBody: z.string(),
  async handle({ user, parts }) {
    return (await issueAccessToken(parts, { user: user.id })).access_token
  },
})
