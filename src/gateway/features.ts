import type { SessionAffinity } from '../features/affinity/affinity.ts'
import type { CacheBreaks } from '../features/affinity/cache-breaks.ts'
import { sessionAffinity } from '../features/affinity/feature.ts'
import { contentLog } from '../features/content/feature.ts'
import { earlyStreams } from '../features/early-stream/feature.ts'
import { promptBounds } from '../features/prompt-bounds/feature.ts'
import type { PromptMemory } from '../features/prompt-bounds/prompt-memory.ts'
import { providerLimitsOfCalls } from '../features/provider-limits/feature.ts'
import { callTelemetry } from '../features/telemetry/feature.ts'
import type { ContentLogForCalls } from '../relay/capture-content.ts'
import type { CallFeature } from '../relay/life-cycle.ts'
import type { ProviderLimits } from '../upstreams/provider-limits.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

/** Services that features need. */
interface FeatureServices {
  readonly prompts: PromptMemory
  readonly affinity: SessionAffinity
  readonly breaks: CacheBreaks
  readonly providerLimits: ProviderLimits
  readonly content: ContentLogForCalls
  /** Undefined if no telemetry collector is configured in the environment. */
  readonly telemetry: Telemetry | undefined
}

/** The features that take part in calls, in the order in which they are called at each moment. */
export function callFeatures({
  providerLimits,
  affinity,
  prompts,
  breaks,
  content,
  telemetry,
}: FeatureServices): readonly CallFeature<unknown>[] {
  return [
    providerLimitsOfCalls(providerLimits),
    sessionAffinity(affinity, breaks),
    // After the sessions, which decide the channel whose prompt is looked up.
    promptBounds(prompts),
    earlyStreams(),
    contentLog({ content, telemetry }),
    // After the content log, which says whether content follows.
    ...(telemetry ? [callTelemetry(telemetry)] : []),
  ]
}
