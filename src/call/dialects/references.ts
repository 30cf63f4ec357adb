import type { RepeatedFields } from '@sluice/wire/conversation'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { Usage } from '@sluice/wire/usage'
import type { Channel } from '../../domain/records/channel.ts'
import type { AttemptRequest, ChannelPlan } from '../request-stages.ts'
import type { AnswerOrigin } from './answer-reader.ts'

/** A checked request that may refer to earlier answers, or to which later requests may refer. */
export interface ReferringRequest {
  readonly scan: ScannedObject
  /** Id of the answer that the request continues; undefined if it continues none. */
  readonly previousId: string | undefined
  /** Whether the answer is a compacted conversation. */
  readonly isCompaction: boolean
  /** Whether the client wants the answer to be stored. */
  readonly isStored: boolean
  /** Whether the answer is generated even if the client leaves. */
  readonly isBackground: boolean
}

/** What a request refers to, as far as it concerns the request and its answer. */
export interface ResolvedReferences {
  /** Whether an earlier answer is known to which the request refers. */
  readonly isKnown: boolean
  /** Where the answer is that the request continues; undefined if it continues none, or if that is unknown. */
  readonly continues?: 'at provider' | 'at gateway' | undefined
  /** The request with the content that the gateway keeps, in place of references to it; absent if it keeps none of it. */
  readonly composed?: ScannedObject | undefined
  /** Members that are changed for a provider of the client's protocol, as JSON texts. */
  readonly replace: ReadonlyMap<string, string>
  /** Names of request fields that such a provider does not get. */
  readonly dropped: readonly string[]
  /** Returns the channels that can serve the references. Throws if there are none. */
  channelsFor(channels: readonly Channel[]): readonly Channel[]
  /** Restricts a plan to the provider account that can serve the references. */
  accountAt(channel: Channel): Pick<ChannelPlan, 'isOfKey'>
  /**
   * Tokens of the prompt that are only referred to, and whether there are more of unknown number. `modelContext`: the
   * tokens that a prompt can have.
   */
  promptSize(modelContext: number): { readonly tokens: number; readonly hasUnknown: boolean }
  /** Returns how the answer of a channel that speaks the client's protocol is read; undefined if as it comes. */
  answerFrom(channel: Channel): ReferableAnswer | undefined
  /** Set if the answer of a channel of another protocol is kept. */
  readonly keeping?: AnswerKeeping | undefined
}

/** How an answer is read to which later requests may refer. */
export type ReferableAnswer = Required<Pick<AttemptRequest, 'errorBody' | 'tap' | 'reply'>>

/** Keeps the answers to a converted request. */
export interface AnswerKeeping {
  /** Members that the answer states because it is kept. */
  readonly repeats: RepeatedFields
  /** Begins to keep the answer of an attempt. */
  begin(): AnswerKeeper
}

/** Keeps one answer, in the form that the client receives. */
export interface AnswerKeeper {
  keep(answer: string, charged: Usage, origin: AnswerOrigin): Promise<void>
  /** Keeps the answer of a stream, whose last frame contains it. */
  keepStream(finalBytes: Buffer, charged: Usage, origin: AnswerOrigin): Promise<void>
}

/** References that no feature resolves: the provider gets them as they are. */
export const UNRESOLVED: ResolvedReferences = {
  isKnown: false,
  replace: new Map(),
  dropped: [],
  channelsFor: (channels) => channels,
  accountAt: () => ({}),
  promptSize: () => ({ tokens: 0, hasUnknown: false }),
  answerFrom: () => undefined,
}
