import type { SessionAffinity } from '../features/affinity/affinity.ts'
import type { CacheBreaks } from '../features/affinity/cache-breaks.ts'
import { sessionAffinity } from '../features/affinity/feature.ts'
import type { ContentLogForCalls } from '../features/content/capture-content.ts'
import { contentLog } from '../features/content/feature.ts'
import { earlyStreams } from '../features/early-stream/feature.ts'
import { guardFeature } from '../features/guards/feature.ts'
import { type GuardFeatureServices, makeGuards } from '../features/guards/guards.ts'
import { limitHeaders } from '../features/limit-headers/feature.ts'
import { modelDates } from '../features/model-dates/feature.ts'
import { promptBounds } from '../features/prompt-bounds/feature.ts'
import type { PromptMemory } from '../features/prompt-bounds/prompt-memory.ts'
import { providerLimitsOfCalls } from '../features/provider-limits/feature.ts'
import { storedResponses, type StoredResponseServices } from '../features/stored-responses/feature.ts'
import { callTelemetry } from '../features/telemetry/feature.ts'
import type { AnswerCache } from '../features/equal-calls/answer-cache.ts'
import { equalCalls } from '../features/equal-calls/feature.ts'
import type { IdempotentCalls } from '../features/equal-calls/idempotent-calls.ts'
import { mcpTools } from '../features/mcp/feature.ts'
import type { ResponseRoundServices } from '../features/mcp/response-rounds.ts'
import { turnsOverSockets } from '../features/websocket/feature.ts'
import type { ProviderSockets } from '../features/websocket/provider-sockets.ts'
import type { CallLimits } from '../call/call-limits.ts'
import type { CallFeature } from '../call/feature.ts'
import type { ProviderLimits } from '../upstreams/provider-limits.ts'
import type { Settings } from '../domain/settings.ts'
import type { ModelRetirements } from '../upstreams/model-retirements.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

/** Services that features need. */
export interface FeatureServices extends StoredResponseServices, GuardFeatureServices {
  readonly settings: () => Settings
  readonly limits: CallLimits
  readonly ends: ModelRetirements
  readonly prompts: PromptMemory
  readonly affinity: SessionAffinity
  readonly breaks: CacheBreaks
  readonly providerLimits: ProviderLimits
  readonly idempotent: IdempotentCalls
  readonly cache: AnswerCache
  readonly content: ContentLogForCalls
  readonly providerSockets: ProviderSockets
  /** Called when a request needs them: they include the relay, which needs the features. */
  readonly mcpRounds: () => ResponseRoundServices
  /** Undefined if no telemetry collector is configured in the environment. */
  readonly telemetry: Telemetry | undefined
}

/** The features that take part in calls, in the order in which they are called at each moment. */
export function callFeatures({
  responses,
  background,
  signatures,
  providerLimits,
  affinity,
  limits,
  ends,
  settings,
  prompts,
  breaks,
  idempotent,
  cache,
  content,
  providerSockets,
  mcpRounds,
  telemetry,
  ...others
}: FeatureServices): readonly CallFeature<unknown>[] {
  return [
    limitHeaders(limits, settings),
    modelDates(ends, settings),
    // Before all features that read the request or the answer: they see what guards let pass.
    guardFeature(makeGuards(others)),
    equalCalls(idempotent, cache),
    storedResponses({ responses, background, signatures }),
    providerLimitsOfCalls(providerLimits),
    sessionAffinity(affinity, breaks),
    // After the sessions, which decide the channel whose prompt is looked up.
    promptBounds(prompts),
    earlyStreams(),
    turnsOverSockets(providerSockets),
    mcpTools(mcpRounds),
    contentLog({ content, telemetry }),
    // After the content log, which decides whether content is exported too.
    ...(telemetry ? [callTelemetry(telemetry)] : []),
  ]
}
