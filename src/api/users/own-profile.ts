import { noUser } from '../../management/users/find-user.ts'
import { profileObject, profileSchema } from '../../management/users/profile-object.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: User profile`. */
export const ownProfile = defineEndpoint({
  method: 'GET',
  path: '/api/user/self',
  area: 'management',
  access: 'account',
  summary: "The account's own profile",
  responseBody: profileSchema,
  async handle({ user, parts }) {
    return profileObject(
      parts,
      (await parts.store.read('managedUser', { userId: user.id })) ?? noUser(user.id),
    )
  },
})
