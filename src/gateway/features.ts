import { contentLog } from '../features/content/feature.ts'
import { callTelemetry } from '../features/telemetry/feature.ts'
import type { ContentLogForCalls } from '../relay/capture-content.ts'
import type { CallFeature } from '../relay/life-cycle.ts'
import type { Telemetry } from '../telemetry/telemetry.ts'

/** Services that features need. */
interface FeatureServices {
  readonly content: ContentLogForCalls
  /** Undefined if no telemetry collector is configured in the environment. */
  readonly telemetry: Telemetry | undefined
}

/** The features that take part in calls, in the order in which they are called at each moment. */
export function callFeatures({ content, telemetry }: FeatureServices): readonly CallFeature<unknown>[] {
  return [
    contentLog({ content, telemetry }),
    // After the content log, which says whether content follows.
    ...(telemetry ? [callTelemetry(telemetry)] : []),
  ]
}
