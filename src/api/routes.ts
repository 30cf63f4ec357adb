import { chatCompletions } from './chat-completions.ts'
import { completions } from './completions.ts'
import { countTokens } from './count-tokens.ts'
import { createUser } from './create-user.ts'
import { removeUser } from './delete-user.ts'
import type { Endpoint } from './endpoint.ts'
import { getUser } from './get-user.ts'
import { healthz, readyz } from './health.ts'
import { listUsers } from './list-users.ts'
import { login } from './login.ts'
import { logout, logoutByGet } from './logout.ts'
import { manage } from './manage-user.ts'
import { messages } from './messages.ts'
import { metricsEndpoint } from './metrics.ts'
import { ownAccessToken } from './own-access-token.ts'
import { ownProfile } from './own-profile.ts'
import { searchUsers } from './search-users.ts'
import { updateOwnProfile } from './update-own-profile.ts'
import { updateUser } from './update-user.ts'

/** Everything that the gateway answers to: its table of contents. */
export const ROUTES: readonly Endpoint[] = [
  chatCompletions,
  completions,
  messages,
  countTokens,
  healthz,
  readyz,
  metricsEndpoint,
  login,
  logout,
  logoutByGet,
  ownProfile,
  updateOwnProfile,
  ownAccessToken,
  listUsers,
  searchUsers,
  getUser,
  createUser,
  updateUser,
  removeUser,
  manage,
]
