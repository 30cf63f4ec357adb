import type { BodyArrival } from '../../call/body-reader.ts'
import type { TurnForm } from '../../call/incoming-call.ts'
import type { RenderedRefusal } from '../../call/incoming-call.ts'
import type { GatewayError } from '../../errors.ts'
import type { Headers, Request } from '../../http/request.ts'
import type { ResizableAllocation, ResponseMemory } from '../../limits/request-memory.ts'
import type { SocketConversations } from './conversations.ts'
import type { ProviderLane } from './provider-lane.ts'
import type { EventResponse } from '../../call/answers/event-response.ts'

/** A turn as the gateway serves it: like a request to `POST /v1/responses`. */
export interface ServedTurn {
  readonly id: string
  readonly request: Request
  readonly response: EventResponse
  readonly form: TurnForm
  /** Whether the request is only checked: then it is answered with a 204, or with a 202 if a provider should answer it. */
  readonly isCheck: boolean
  /** Called once the work of the call is done: its charge is known, and it counts in no limit of parallel calls any more. */
  readonly over: () => void
}

/** What a socket needs of the gateway. */
export interface SocketServices {
  readonly serveTurn: (turn: ServedTurn) => void
  readonly renderError: (error: unknown, id: string) => RenderedRefusal
  /** Watches a message that has not arrived completely. `refuse` is called if it is too slow. */
  readonly arrival: (refuse: (error: GatewayError) => void) => BodyArrival
  /** Takes memory of the client's share for messages that wait, and for items of answers. */
  readonly memory: ResizableAllocation
  /** Memory of the client's share for events of an answer. */
  readonly answerMemory: () => ResponseMemory
  readonly conversations: SocketConversations
  /** Sends the turns of a new lane over sockets of providers. */
  readonly providerLane: () => ProviderLane
  readonly nowMs: () => number
  readonly onClosed: (code: number) => void
}

/** Durations in milliseconds, as in `options.websocket`. */
export interface SocketTimes {
  readonly idle: number
  readonly age: number
  readonly ping: number
}

/** The upgrade that opened a socket. */
export interface Upgrade {
  readonly id: string
  readonly url: string
  readonly headers: Headers
  readonly remoteAddress: string
}
