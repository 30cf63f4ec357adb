import { chatCompletions } from './chat-completions.ts'
import { completions } from './completions.ts'
import { countTokens } from './count-tokens.ts'
import type { Endpoint } from './endpoint.ts'
import { healthz, readyz } from './health.ts'
import { messages } from './messages.ts'
import { metricsEndpoint } from './metrics.ts'
import { openApi } from './openapi.ts'
import { ownProfile } from './own-profile.ts'
import { ownUsageDays, usageDays } from './usage-days.ts'
import { ownUsageExport, usageExport } from './usage-export.ts'
import { ownUsageLog, usageLog } from './usage-log.ts'
import { ownUsageSums, usageSums } from './usage-stat.ts'

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
  usageLog,
  ownUsageLog,
  usageSums,
  ownUsageSums,
  usageExport,
  ownUsageExport,
  usageDays,
  ownUsageDays,
  openApi(() => ROUTES),
]
