/** A tool offered in a request, or a service tier named in a response, for which no price is configured. */
export interface UnpricedTool {
  readonly model: string
  readonly channel: string
  /** Type of the tool that a request offered, such as `web_search`. */
  readonly tool?: string
  /** Service tier in which the provider served the call. */
  readonly tier?: string
}

/** Interval at which a tool without a price is reported again. */
export const UNPRICED_REPORT_INTERVAL_MS = 3_600_000
/** Maximum number of tools remembered, because clients choose their names. */
const MAX_TOOLS = 200

interface Noted {
  readonly tool: UnpricedTool
  /** Whether a request has offered the tool after its last report. */
  isNew: boolean
  reportedMs: number
}

/** Key by which repeated reports are recognized: model, channel and tool, or model and tier. */
export function unpricedToolKey({ model, channel, tool, tier }: UnpricedTool): string {
  return JSON.stringify(tier === undefined ? [model, channel, tool] : [model, { tier }])
}

/** Collects tools without a price that requests offered. An alert reports each tool once an hour. */
export class UnpricedTools {
  readonly #noted = new Map<string, Noted>()

  /** Records that a request offered the tool. */
  note(tool: UnpricedTool): void {
    const key = unpricedToolKey(tool)
    const known = this.#noted.get(key)
    if (known) known.isNew = true
    else if (this.#noted.size < MAX_TOOLS)
      this.#noted.set(key, { tool, isNew: true, reportedMs: Number.NEGATIVE_INFINITY })
  }

  /** Returns the tools to report now; `nowMs` is on a monotonic clock. */
  due(nowMs: number): readonly UnpricedTool[] {
    const due: UnpricedTool[] = []
    for (const [key, noted] of this.#noted) {
      if (nowMs - noted.reportedMs < UNPRICED_REPORT_INTERVAL_MS) continue
      if (noted.isNew) due.push(noted.tool)
      else this.#noted.delete(key)
      noted.isNew = false
      noted.reportedMs = nowMs
    }
    return due
  }

  /** Makes all tools of the last hour due again, because a report could not be stored. */
  forget(): void {
    for (const noted of this.#noted.values()) {
      noted.isNew = true
      noted.reportedMs = Number.NEGATIVE_INFINITY
    }
  }
}
