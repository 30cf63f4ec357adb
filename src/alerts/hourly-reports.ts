import type { AlertEvent } from '../domain/alert.ts'

/** A tool offered in a request, or a service tier named in a response, for which no price is configured. */
export interface UnpricedTool {
  readonly model: string
  readonly channel: string
  /** Type of the tool that a request offered, such as `web_search`. */
  readonly tool?: string
  /** Service tier in which the provider served the call. */
  readonly tier?: string
}

/** A model whose channel has reported a usage that is not believed. */
export interface ImplausibleUsage {
  readonly model: string
  readonly channel: string
}

/** A tool of an MCP server with a definition that is not approved. */
export type WithheldTool = Extract<AlertEvent, { readonly type: 'mcp.tool_changed' }>['data']

/** Interval at which a fact that continues to be true is reported again. */
export const REPORT_INTERVAL_MS = 3_600_000
/** Maximum number of facts remembered of one origin, because clients, providers or servers choose the names in them. */
const MAX_FACTS = 200

interface NotedFact<Fact> {
  readonly fact: Fact
  /** Whether a call has shown the fact after its last report. */
  isNew: boolean
  reportedMs: number
}

/** Collects facts that calls have shown. An alert reports each of them once an hour. */
export class HourlyReports<Fact> {
  readonly #keyOf: (fact: Fact) => string
  readonly #originOf: (fact: Fact) => string
  readonly #noted = new Map<string, NotedFact<Fact>>()
  /** Number of facts of each origin. */
  readonly #counts = new Map<string, number>()

  /**
   * `keyOf` returns the key by which repeated reports are recognized; `originOf`, whose facts are bounded together. The
   * number of origins must be bounded itself.
   */
  constructor(keyOf: (fact: Fact) => string, originOf: (fact: Fact) => string = () => '') {
    this.#keyOf = keyOf
    this.#originOf = originOf
  }

  /** Records that a call has shown the fact. */
  note(fact: Fact): void {
    const key = this.#keyOf(fact)
    const known = this.#noted.get(key)
    if (known) {
      known.isNew = true
      return
    }
    const origin = this.#originOf(fact)
    const count = this.#counts.get(origin) ?? 0
    if (count >= MAX_FACTS) return
    this.#counts.set(origin, count + 1)
    this.#noted.set(key, { fact, isNew: true, reportedMs: Number.NEGATIVE_INFINITY })
  }

  /** Returns the facts to report now; `nowMs` is on a monotonic clock. */
  due(nowMs: number): readonly Fact[] {
    const due: Fact[] = []
    for (const [key, noted] of this.#noted) {
      if (nowMs - noted.reportedMs < REPORT_INTERVAL_MS) continue
      if (noted.isNew) due.push(noted.fact)
      else this.#remove(key, noted.fact)
      noted.isNew = false
      noted.reportedMs = nowMs
    }
    return due
  }

  #remove(key: string, fact: Fact): void {
    this.#noted.delete(key)
    const origin = this.#originOf(fact)
    const left = (this.#counts.get(origin) ?? 0) - 1
    if (left > 0) this.#counts.set(origin, left)
    else this.#counts.delete(origin)
  }

  /** Makes all facts of the last hour due again, because a report could not be stored. */
  forget(): void {
    for (const noted of this.#noted.values()) {
      noted.isNew = true
      noted.reportedMs = Number.NEGATIVE_INFINITY
    }
  }
}

/** Key of a tool or service tier without a price: model, channel and tool, or model and tier. */
export function unpricedToolKey({ model, channel, tool, tier }: UnpricedTool): string {
  return JSON.stringify(tier === undefined ? [model, channel, tool] : [model, { tier }])
}

/** Key of a withheld tool: server, tool and definition. */
export function withheldToolKey({ server, tool, digest }: WithheldTool): string {
  return JSON.stringify([server, tool, digest])
}

/** Key of an implausible usage: model and channel. */
export function implausibleUsageKey({ model, channel }: ImplausibleUsage): string {
  return JSON.stringify([model, channel])
}
