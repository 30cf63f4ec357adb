import { chatCompletions } from './chat-completions.ts'
import { completions } from './completions.ts'
import { countTokens } from './count-tokens.ts'
import { healthz, readyz } from './health.ts'
import { messages } from './messages.ts'
import { metricsEndpoint } from './metrics.ts'
import { rerank } from './rerank.ts'
import type { RawEndpoint } from './endpoint.ts'
import { tokenUsageRedirect } from './token-usage-redirect.ts'

/** The endpoints that read and answer by themselves: model calls, and what watches over the gateway. */
export const RAW_ROUTES: readonly RawEndpoint[] = [
  chatCompletions,
  completions,
  messages,
  countTokens,
  ...rerank,
  healthz,
  readyz,
  metricsEndpoint,
  tokenUsageRedirect,
]
