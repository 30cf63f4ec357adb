import type { ImageForm } from '../../domain/image-price.ts'
import type { Usage } from '../../domain/usage.ts'
import type { StreamError } from '../../protocols/sse/stream-tap.ts'
import type { Call } from '../call.ts'
import type { Ending } from '../priced-usage.ts'
import type { Tap } from './dialect.ts'

/** The call that a measure is made for. */
export type MeasuredCall = Pick<Call, 'client' | 'rate' | 'count' | 'countChargedPrompt'>

/** Usage that a call is charged by. */
export interface Measure {
  readonly usage: Usage
  /** Size and quality of its images. */
  readonly form?: ImageForm
  /** Neither reported nor measured exactly. */
  readonly isEstimate: boolean
}

/** Result of a push. */
export interface PassedBytes {
  /** Bytes that may go on now. */
  readonly forward: Buffer | undefined
  /** The response has ended by its own words, and is to be ended. */
  readonly isOver: boolean
}

/** A response on its way to the client, which is read but not changed and never held as a whole. */
export interface Passage {
  /** Whether it is known to be a response of its endpoint: another upstream may be asked before. */
  readonly hasBegun: boolean
  /** The upstream's error in place of the response, or in the middle of it. */
  readonly error: StreamError | undefined
  /** The tap of a stream of events, whose clients can be told why it ends. */
  readonly tap?: Tap
  push(chunk: Buffer): PassedBytes
  /** Ends the reading: whether the response is complete and of its endpoint. */
  end(): boolean
  /** The body of the request for the rest, where a complete response was not all. */
  next?(): Buffer | undefined
  /** The bytes that were held back, once the call is charged. */
  rest(): Buffer
  /** Whether anything went on that is paid for. */
  readonly hasContent: boolean
  /** Measures the usage to charge, at the end of the call or where it broke off. */
  measure(call: MeasuredCall, isComplete: boolean, ending: Ending): Measure | Promise<Measure>
}

/** The responses of an endpoint that go through as they come. */
export interface PassedResponses {
  /** Media types that the upstream is asked for. */
  readonly accept: string
  /** Begins a response of that type; undefined for a type that the endpoint does not have. */
  begin(contentType: string): Passage | undefined
  /** Measures the usage to charge where the client left before a response began. */
  measureUnanswered(call: MeasuredCall): Measure | Promise<Measure>
}
