import type { Usage } from '../../domain/usage.ts'

/** What to do with the bytes that were pushed. */
export interface TapStep {
  /** To be sent now; undefined where nothing is. The pushed chunk itself where it can go whole. */
  readonly forward: Buffer | undefined
  /** The stream said its last word ([DONE] or an error): what follows is in `ending`. */
  readonly terminal: boolean
}

/** An error that upstream sent as a frame. */
export interface StreamError {
  /** The frame's data, as it came. */
  readonly data: string
  /** Whether generated text was forwarded before it. */
  readonly afterContent: boolean
}

/** How a stream stood when upstream ended. */
export interface TapEnd {
  /** [DONE], or an error frame and all after it; empty where upstream sent neither. Sent, or replaced, after settling. */
  readonly ending: Buffer
  /** Bytes of a frame that never became whole; not forwarded. */
  readonly cutBytes: number
  /** [DONE] or a finish reason for every choice was seen, and no error. */
  readonly complete: boolean
}

/** Watches a native chat stream go by. Holds back the end, swallows the usage frame that the gateway asked for. */
export class ChatTap {
  /** The last valid usage. */
  usage: Usage | undefined
  /** [DONE] was seen. */
  done = false
  error: StreamError | undefined
  /** UTF-8 bytes of generated text in forwarded frames. */
  emittedBytes = 0
  /** Forwarded frames with generated text. */
  contentFrames = 0

  constructor(_options: { readonly swallowUsage: boolean; readonly maxEventBytes?: number }) {}

  /** Every choice that was seen has a finish reason. */
  get sawFinish(): boolean {
    throw new Error('not yet')
  }

  /** The generated text so far, for counting. */
  get text(): string {
    throw new Error('not yet')
  }

  /** Throws `upstream_error` where one event is larger than the cap. */
  push(_chunk: Buffer): TapStep {
    throw new Error('not yet')
  }

  end(): TapEnd {
    throw new Error('not yet')
  }
}
