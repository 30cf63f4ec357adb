import { chatCompletions } from './relay/chat-completions.ts'
import { completions } from './relay/completions.ts'
import { embeddings } from './relay/embeddings.ts'
import { moderations } from './relay/moderations.ts'
import { countTokens } from './relay/count-tokens.ts'
import { gemini } from './relay/gemini.ts'
import { healthz, readyz } from './monitoring/health.ts'
import { media } from './relay/media.ts'
import { messages } from './relay/messages.ts'
import { metricsEndpoint } from './monitoring/metrics.ts'
import { compactResponses, countInputTokens, responses } from './relay/responses.ts'
import { storedResponses } from './relay/stored-responses.ts'
import { playground } from './relay/playground.ts'
import { rerank } from './relay/rerank.ts'
import type { RawEndpoint } from './endpoint.ts'
import { tokenUsageRedirect } from './tokens/token-usage-redirect.ts'

/** The endpoints that read requests and write responses themselves: model calls and monitoring. */
export const RAW_ROUTES: readonly RawEndpoint[] = [
  chatCompletions,
  completions,
  embeddings,
  moderations,
  messages,
  countTokens,
  responses,
  countInputTokens,
  compactResponses,
  ...storedResponses,
  ...gemini,
  ...playground,
  ...rerank,
  ...media,
  healthz,
  readyz,
  metricsEndpoint,
  tokenUsageRedirect,
]
