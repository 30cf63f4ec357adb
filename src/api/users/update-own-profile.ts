import { changeOwnProfile, ownProfileInput } from '../../management/users/change-own-profile.ts'
import { profileObject, profileSchema } from '../../management/users/profile-object.ts'
import { defineEndpoint } from '../endpoint.ts'

/** `docs/api.md: Own account`. */
export const updateOwnProfile = defineEndpoint({
  method: 'PUT',
  path: '/api/user/self',
  area: 'management',
  access: 'account',
  summary: "Change the account's own display name or password",
  // Limited because the endpoint checks a password, which could be guessed.
  limit: 'critical',
  body: ownProfileInput,
  responseBody: profileSchema,
  async handle({ user, sessionHash, body, parts }) {
    return profileObject(parts, await changeOwnProfile(parts, user, body, sessionHash))
  },
})
