import { anyCall, callPath, callSchema, ownCall, ownCallSchema } from '../../management/usage/call-detail.ts'
import { defineEndpoint } from '../endpoint.ts'

/** One settled call of any user, with its cost and attempts. `docs/api.md: Usage log`. */
export const callDetail = defineEndpoint({
  method: 'GET',
  path: '/api/log/:id',
  area: 'management',
  access: 'admin',
  summary: 'A settled call with the lines of its cost, and its attempts',
  errorStatuses: [404],
  params: callPath,
  responseBody: callSchema,
  handle: ({ params, parts }) => anyCall(parts, params.id),
})

/** One of the account's own settled calls. */
export const ownCallDetail = defineEndpoint({
  method: 'GET',
  path: '/api/log/self/:id',
  area: 'management',
  access: 'account',
  summary: "One of the account's own settled calls with the lines of its cost",
  errorStatuses: [404],
  params: callPath,
  responseBody: ownCallSchema,
  handle: ({ user, params, parts }) => ownCall(parts, params.id, user.id),
})
