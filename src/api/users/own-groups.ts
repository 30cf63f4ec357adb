import { groupsSchema, usableGroupsObject } from '../../management/users/usable-groups.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/administration.md: Groups`. */
export const ownGroups = defineEndpoint({
  method: 'GET',
  path: '/api/user/self/groups',
  area: 'management',
  access: 'account',
  summary: "The groups that the account's tokens may name",
  responseBody: groupsSchema,
  handle: ({ user, parts }) => Promise.resolve(usableGroupsObject(parts.settings(), user)),
})
