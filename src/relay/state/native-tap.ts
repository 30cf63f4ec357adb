import type { Usage } from '@sluice/wire/usage'
import type { ResponsesTap } from '@sluice/wire/responses'
import type { Provenance } from '../../domain/stored-response.ts'
import type { Call, Target } from '../call.ts'
import type { NativeResponse } from './native-response.ts'
import { RenamingTap } from './renaming-tap.ts'

/** Tap of a native response while it is generated. */
export class NativeTap extends RenamingTap {
  readonly #response: NativeResponse
  /** Ends the recording of what is streamed. */
  #endNote: (() => void) | undefined
  #isReleased = false

  constructor(inner: ResponsesTap, response: NativeResponse) {
    super(inner, response.ids)
    this.#response = response
  }

  /** A background stream continues without its client once it has an id by which it can be retrieved. */
  get goOn(): ((target: Target, call: Call) => Promise<boolean>) | undefined {
    const { responseId } = this.inner
    if (!this.#response.isBackground || responseId === '') return undefined
    return async (target, call) => {
      const goesOn = await this.#response.goOn(target, call, responseId)
      if (goesOn) this.#endNote = this.#response.note(this.inner)
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
    const { responseId: id, encrypted, itemIds, usage } = this.inner
    return this.#response.provenance({ id, encrypted, itemIds, usage }, target, call, charged)
  }

  protected learn(): void {
    this.#response.learn(this.inner.responseId)
  }
}
