import type { AlertType } from '../domain/alert.ts'
import type { Shed } from '../limits/overload.ts'
import { UNPRICED_REPEAT_MS, type UnpricedTools } from './unpriced-tools.ts'
import type { ReportedConditions } from '../store/operations/alert-conditions.ts'

/** Interval at which a condition that lasts is reported again. */
const REPEAT_MS = 15_000
/** Time without cooldowns on any node after which a channel is back: it may fail again at once. */
const CALM_MS = 60_000
/** Time without refusals after which load shedding is news again. */
const OVERLOAD_CALM_MS = 300_000

/** Sources of conditions on this node. */
export interface ConditionSources {
  /** Channels that rest. */
  readonly resting: () => readonly string[]
  /** Calls that were refused for load. */
  readonly shed: () => Shed
  readonly unpriced: Pick<UnpricedTools, 'due' | 'forget'>
}

/** Watches this node for what the nodes of a cluster tell together: channels that rest, load shedding. */
export class ConditionWatch {
  readonly #sources: ConditionSources
  /** Times of the last reports, by channel; by a clock that never goes back. */
  #reportedMs: ReadonlyMap<string, number> = new Map()
  #overloadReportedMs = Number.NEGATIVE_INFINITY
  #shedCount = 0

  constructor(sources: ConditionSources) {
    this.#sources = sources
  }

  /**
   * Returns what is to be reported, or undefined. `isTold`: whether a receiver wants events of a type;
   * `nowMs`: a clock that never goes back, `timeMs` the time of day.
   */
  news(
    isTold: (type: AlertType) => boolean,
    channels: ReadonlySet<string>,
    nowMs: number,
    timeMs: number,
  ): ReportedConditions | undefined {
    const isDue = (reportedMs: number | undefined): boolean =>
      reportedMs === undefined || nowMs - reportedMs >= REPEAT_MS
    const isWatched = isTold('channel.resting') || isTold('channel.back')
    const resting = isWatched ? this.#sources.resting().filter((name) => channels.has(name)) : []
    const due = resting.filter((name) => isDue(this.#reportedMs.get(name)))
    this.#reportedMs = new Map(
      resting.map((name) => [name, due.includes(name) ? nowMs : (this.#reportedMs.get(name) ?? nowMs)]),
    )
    const { count, reason } = this.#sources.shed()
    const hasShed = count > this.#shedCount && isTold('gateway.overloaded')
    // Refusals before the next report is due count then.
    const isOverloadDue = hasShed && isDue(this.#overloadReportedMs)
    if (isOverloadDue) this.#overloadReportedMs = nowMs
    if (isOverloadDue || !hasShed) this.#shedCount = count
    const unpriced = isTold('price.incomplete') ? this.#sources.unpriced.due(nowMs) : []
    if (due.length === 0 && unpriced.length === 0 && !isOverloadDue) return undefined
    return {
      nowMs: timeMs,
      resting: due,
      restingUntilMs: timeMs + CALM_MS,
      ...(unpriced.length > 0 && { unpriced: { tools: unpriced, untilMs: timeMs + UNPRICED_REPEAT_MS } }),
      overload: isOverloadDue ? { reason, untilMs: timeMs + OVERLOAD_CALM_MS } : undefined,
    }
  }

  /** Reports everything again, as after a report that could not be stored. */
  forget(): void {
    this.#reportedMs = new Map()
    this.#sources.unpriced.forget()
    this.#overloadReportedMs = Number.NEGATIVE_INFINITY
    this.#shedCount = Math.max(0, this.#shedCount - 1)
  }
}
