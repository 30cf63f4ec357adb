import type { Conversation } from '@sluice/wire/conversation'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { ReplyEvent, ReplyPart } from '@sluice/wire/reply'
import type { Channel } from '../../domain/records/channel.ts'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { AnswerOrigin } from './answer-reader.ts'

/** A conversation for one provider account of a channel. */
export interface AccountConversation {
  readonly conversation: Conversation
  /** Whether a key belongs to that account; absent if the conversation is for all keys. */
  readonly isOfKey?: (key: UpstreamKey) => boolean
}

/** A decoded conversation, in the forms in which channels get it. */
export interface DecodedConversation {
  /** Name of the channel that comes first among those of its priority; undefined if none does. */
  readonly origin: string | undefined
  /** The conversation for each account of a channel. */
  conversationsFor(channel: Channel, spoken: ProtocolName): readonly AccountConversation[]
  /** Called with the parts of a complete answer. The client gets its end when the promise has resolved. */
  readonly keep?: (parts: readonly ReplyPart[], origin: AnswerOrigin) => Promise<void>
  /** Returns what reads a streamed answer in the dialect `spoken`; undefined if nothing does. */
  readonly streamed?: (spoken: ProtocolName) => StreamedParts | undefined
}

/** Reads the events of a streamed answer. */
export interface StreamedParts {
  add(event: ReplyEvent): void
  /** Called when the stream is complete. The client gets its end when the promise has resolved. */
  keep(origin: AnswerOrigin): Promise<void>
}

/** A conversation that all channels get as it is. */
export function sameForAll(conversation: Conversation): DecodedConversation {
  return { origin: undefined, conversationsFor: () => [{ conversation }] }
}
