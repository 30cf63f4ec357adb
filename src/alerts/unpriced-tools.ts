/** Tool without a price that a request offered. */
export interface UnpricedTool {
  readonly model: string
  readonly channel: string
  /** Type of the tool. */
  readonly tool: string
}

/** Interval at which the same tool is told again. */
export const UNPRICED_REPEAT_MS = 3_600_000
/** Tools that are remembered at once: clients choose their names. */
const MAX_TOOLS = 200

interface Noted {
  readonly tool: UnpricedTool
  /** Whether it was offered since it was last told. */
  isNew: boolean
  toldMs: number
}

/** Tools without a price that calls offered, for alerts: each once an hour. */
export class UnpricedTools {
  readonly #noted = new Map<string, Noted>()

  /** Notes that a call offered the tool. */
  note(tool: UnpricedTool): void {
    const key = JSON.stringify([tool.model, tool.channel, tool.tool])
    const known = this.#noted.get(key)
    if (known) known.isNew = true
    else if (this.#noted.size < MAX_TOOLS)
      this.#noted.set(key, { tool, isNew: true, toldMs: Number.NEGATIVE_INFINITY })
  }

  /** Returns the tools that are to be told now; `nowMs`: a clock that never goes back. */
  due(nowMs: number): readonly UnpricedTool[] {
    const due: UnpricedTool[] = []
    for (const [key, noted] of this.#noted) {
      if (nowMs - noted.toldMs < UNPRICED_REPEAT_MS) continue
      if (noted.isNew) due.push(noted.tool)
      else this.#noted.delete(key)
      noted.isNew = false
      noted.toldMs = nowMs
    }
    return due
  }

  /** Tells all of the last hour again, as after a report that could not be stored. */
  forget(): void {
    for (const noted of this.#noted.values()) {
      noted.isNew = true
      noted.toldMs = Number.NEGATIVE_INFINITY
    }
  }
}
