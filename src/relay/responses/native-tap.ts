import type { Provenance } from '../../domain/provenance.ts'
import type { Usage } from '@sluice/wire/usage'
import type { EventMemory } from '@sluice/wire/sse/event-memory'
import type { Call } from '../call.ts'
import type { NativeResponse } from './native-response.ts'
import { RenamingTap } from './renaming-tap.ts'
import type { Target } from '../request-stages.ts'

/** Tap of a native response while it is generated. */
export class NativeTap extends RenamingTap {
  readonly #response: NativeResponse
  /** Ends the recording of what is streamed. */
  #endNote: (() => void) | undefined
  #isReleased = false

  constructor(memory: EventMemory, response: NativeResponse) {
    super(memory, response.ids)
    this.#response = response
  }

  /** A background stream continues without its client once it has an id by which it can be retrieved. */
  get goOn(): ((target: Target, call: Call) => Promise<boolean>) | undefined {
    const { responseId } = this
    if (!this.#response.isBackground || responseId === '') return undefined
    return async (target, call) => {
      const goesOn = await this.#response.goOn(target, call, responseId)
      if (goesOn) this.#endNote = this.#response.note(this)
      if (this.#isReleased) this.#endNote?.()
      return goesOn
    }
  }

  override release(): void {
    this.#isReleased = true
    super.release()
    this.#endNote?.()
  }

  provenance(target: Target, call: Call, charged: Usage): Provenance | undefined {
    const { responseId: id, encrypted, itemIds, usage } = this
    return this.#response.provenance({ id, encrypted, itemIds, usage }, target, call, charged)
  }

  protected learn(): void {
    this.#response.learn(this.responseId)
  }
}
