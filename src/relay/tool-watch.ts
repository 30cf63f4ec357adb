import { chargeOfTools } from '../domain/charge.ts'
import { kindAt, priceOfUse } from '../domain/tool-price.ts'
import type { ToolKind } from '../domain/tool-use.ts'
import type { Call, Target } from './call.ts'
import type { Tap } from './dialects/dialect.ts'
import { termsAt } from './target-tools.ts'
import { toolsAt } from './tool-terms.ts'

/** Watches that the uses of tools in a stream stay within what its hold pays for: one more than began. */
export class ToolWatch {
  readonly #call: Call
  readonly #target: Target
  readonly #tap: Pick<Tap, 'tools'>
  /** Uses that were seen. */
  #seen = 0
  /** Uses that the hold pays for and that did not begin, by kind; undefined before any began. */
  #paid: Map<ToolKind, number> | undefined

  constructor(call: Call, target: Target, tap: Pick<Tap, 'tools'>) {
    this.#call = call
    this.#target = target
    this.#tap = tap
  }

  /** Makes the hold grow with each use that began; false where it cannot pay for one. */
  isWithinHold(): boolean {
    const { begun } = this.#tap.tools
    for (; this.#seen < begun.length; this.#seen++) {
      const kind = begun[this.#seen]
      const { protocol: dialect } = this.#target.prepared
      if (kind && !this.#begin(kindAt(kind, { dialect }))) return false
    }
    return true
  }

  #begin(kind: ToolKind): boolean {
    const paid = (this.#paid ??= this.#paidAtFirst())
    const before = paid.get(kind) ?? 0
    const isPaid = before > 0 || this.#grow(kind)
    paid.set(kind, Math.max(before - 1, 0) + (this.#grow(kind) ? 1 : 0))
    return isPaid
  }

  #grow(kind: ToolKind): boolean {
    const { rate, hold } = this.#call
    const tools = [{ kind, count: 1, price: priceOfUse({ kind }, termsAt(this.#call, this.#target)) }]
    return hold.grow(chargeOfTools(rate, tools))
  }

  #paidAtFirst(): Map<ToolKind, number> {
    const { settings, rate } = this.#call
    const { channel, prepared } = this.#target
    const paid = new Map<ToolKind, number>()
    if (!prepared.tools) return paid
    for (const { kind } of toolsAt(settings, rate, channel, prepared.tools).known)
      if (kind) paid.set(kind, (paid.get(kind) ?? 0) + 1)
    return paid
  }
}
