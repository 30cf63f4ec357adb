import { changeToken } from './change-token.ts'
import { chatCompletions } from './chat-completions.ts'
import { completions } from './completions.ts'
import { countTokens } from './count-tokens.ts'
import { createToken } from './create-token.ts'
import { deleteToken } from './delete-token.ts'
import { deleteTokens } from './delete-tokens.ts'
import type { Endpoint } from './endpoint.ts'
import { getToken } from './get-token.ts'
import { healthz, readyz } from './health.ts'
import { listTokens } from './list-tokens.ts'
import { messages } from './messages.ts'
import { metricsEndpoint } from './metrics.ts'
import { ownProfile } from './own-profile.ts'
import { revealToken } from './reveal-token.ts'
import { revealTokens } from './reveal-tokens.ts'
import { searchTokens } from './search-tokens.ts'

/** Everything that the gateway answers to: its table of contents. */
export const ROUTES: readonly Endpoint[] = [
  chatCompletions,
  completions,
  messages,
  countTokens,
  healthz,
  readyz,
  metricsEndpoint,
  ownProfile,
  listTokens,
  searchTokens,
  getToken,
  revealToken,
  createToken,
  deleteTokens,
  revealTokens,
  changeToken,
  deleteToken,
]
