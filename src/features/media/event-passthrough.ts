import type { MediaTap } from '@sluice/wire/media'
import type { StreamError } from '@sluice/wire/sse/stream-tap'
import { NO_USAGE } from '@sluice/wire/usage'
import type {
  ChargedUsage,
  PassthroughOutput,
  Passthrough,
  MeasuredCall,
} from '../../call/dialects/passthrough.ts'

/** Passes a stream of events through unchanged. `measured` computes the usage from what the tap has read. */
export class EventPassthrough implements Passthrough {
  readonly tap: MediaTap
  readonly #measured: (call: MeasuredCall, isComplete: boolean) => ChargedUsage | Promise<ChargedUsage>
  #isOver = false

  constructor(
    tap: MediaTap,
    measured: (call: MeasuredCall, isComplete: boolean) => ChargedUsage | Promise<ChargedUsage>,
  ) {
    this.tap = tap
    this.#measured = measured
  }

  get hasBegun(): boolean {
    return this.tap.sawEvent || this.tap.isMidEvent
  }

  get hasContent(): boolean {
    return this.tap.hasContent
  }

  get error(): StreamError | undefined {
    return this.tap.error
  }

  push(chunk: Buffer): PassthroughOutput {
    const { forward, terminal } = this.tap.push(chunk)
    return { forward, isOver: terminal }
  }

  end(): boolean {
    if (!this.#isOver) {
      this.#isOver = true
      return this.tap.end().complete
    }
    return this.tap.done
  }

  rest(): Buffer {
    return this.tap.finalBytes(NO_USAGE)
  }

  measure(call: MeasuredCall, isComplete: boolean): ChargedUsage | Promise<ChargedUsage> {
    return this.#measured(call, isComplete)
  }
}
