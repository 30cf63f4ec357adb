import type { MediaAnswerKind } from '@sluice/wire/media-texts'
import type { Usage } from '@sluice/wire/usage'
import type { StreamError } from '@sluice/wire/sse/stream-tap'
import type { ChargeRate, ImageForm } from '../../domain/price.ts'
import type { CheckTurns } from '../check-turns.ts'
import type { TokenCounter } from '../token-counter.ts'
import type { ResponseEnding, Tap } from './answer-reader.ts'

/** The usage by which a call is charged, with size and quality of the images. */
export interface ChargedUsage {
  readonly usage: Usage
  /** Size and quality of the images of the response. */
  readonly form?: ImageForm
  /** Whether the usage was estimated rather than reported or measured exactly. */
  readonly isEstimate: boolean
}

/** A call whose usage is measured. */
export interface MeasuredCall {
  readonly client: number
  readonly plan: { readonly rate: ChargeRate }
  readonly services: { readonly count: TokenCounter }
  countChargedPrompt(): Promise<number>
}

/** What a chunk of the response has made available for the client. */
export interface PassthroughOutput {
  /** Bytes of the response that may be forwarded now. */
  readonly forward: Buffer | undefined
  /** Whether the response has reached its protocol's end and should be ended. */
  readonly isOver: boolean
  /** Whether a part of the chunk alone was checked. The next call of `push`, with no bytes, goes on. */
  readonly isUnfinished?: boolean
}

/** A response that is read on its way to the client. It is neither changed nor kept in memory as a whole. */
export interface Passthrough {
  /**
   * Whether the bytes are known to be a response of this endpoint; until then another upstream may be tried.
   */
  readonly hasBegun: boolean
  /** The upstream's error, which came in place of the response or in the middle of the response. */
  readonly error: StreamError | undefined
  /** Bytes that are held back in memory; undefined if they are negligible. */
  readonly held?: number
  /** Whether a check has ended the answer. Only `rest` is sent then. */
  readonly isBlocked?: boolean
  /** The tap of a stream of events. Its clients can be informed why the stream ends. */
  readonly tap?: Tap
  /** Divides the check of a stream into turns. Each call of `push` takes a part of one. */
  readonly checks?: CheckTurns
  push(chunk: Buffer): PassthroughOutput
  /**
   * Must be called at the end of the upstream's response. Returns whether it is complete and valid for its
   * endpoint.
   */
  end(): boolean
  /**
   * Checks a complete response before it is charged. Rejects with `CheckCancelled` once
   * the signal is aborted.
   */
  check?(signal: AbortSignal): Promise<void>
  /** The client has left, and the response is only read to its end, for its charge. */
  clientLeft?(): void
  /** Returns the body of the next request, if one response is not enough. */
  next?(): Buffer | undefined
  /** Returns the bytes that were held back, after the call was charged. */
  rest(): Buffer
  /** Whether anything that must be charged was forwarded. */
  readonly hasContent: boolean
  /**
   * Measures the usage to charge, at the end of the call or after it broke off. `isSent`: whether the last request
   * that `next` returned was sent.
   */
  measure(
    call: MeasuredCall,
    isComplete: boolean,
    ending: ResponseEnding,
    isSent: boolean,
  ): ChargedUsage | Promise<ChargedUsage>
}

/** The responses of an endpoint that are passed through unchanged. */
export interface PassthroughResponses {
  /** Kind of texts in the responses, for features that check them; undefined if the responses have no texts. */
  readonly about: MediaAnswerKind | undefined
  /** Media types to request from the upstream. */
  readonly accept: string
  /** Whether plain text was requested, which may look like JSON or events. */
  readonly isText?: boolean
  /**
   * Returns the reader of a response with this content type; undefined if the endpoint has no responses of
   * that type.
   */
  begin(contentType: string): Passthrough | undefined
  /** Measures the usage to charge if the client left before a response began. */
  measureUnanswered(call: MeasuredCall): ChargedUsage | Promise<ChargedUsage>
}
