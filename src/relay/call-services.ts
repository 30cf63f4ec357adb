import type { UnpricedTools } from '../alerts/unpriced-tools.ts'
import type { RequestMemory } from '../limits/request-memory.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { CallLimits } from './call-limits.ts'
import type { Drains } from './drains.ts'
import type { LocalCount } from './local-count.ts'

/** Services that all calls share. */
export interface CallServices {
  readonly count: LocalCount
  readonly drains: Drains
  readonly memory: RequestMemory
  readonly metrics: Metrics
  readonly limits: CallLimits
  readonly unpriced: UnpricedTools
}
