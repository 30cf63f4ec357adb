import type { Conversation } from '@sluice/wire/conversation'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Settings } from '../domain/settings.ts'
import type { AnswerInCalls } from './answer-request.ts'
import { type DecodedConversation, sameForAll } from './dialects/decoded-conversation.ts'
import type { ReadingMoments, RequestReaderContext } from './dialects/dialect.ts'
import { type ReferringRequest, type ResolvedReferences, UNRESOLVED } from './dialects/references.ts'
import type { CallFeature } from './feature.ts'
import type { ReadJson } from './request-stages.ts'

type ReadingFeature = Pick<CallFeature, 'divide' | 'refer' | 'decoded'>

/** The features that take part in reading the requests of an endpoint. Without any, requests are read as they are. */
export class ReadingFeatures implements ReadingMoments {
  readonly #dividing: ReadingFeature | undefined
  readonly #referring: ReadingFeature | undefined
  readonly #decoding: ReadingFeature | undefined

  constructor(features: readonly ReadingFeature[]) {
    this.#dividing = features.find((feature) => feature.divide !== undefined)
    this.#referring = features.find((feature) => feature.refer !== undefined)
    this.#decoding = features.find((feature) => feature.decoded !== undefined)
  }

  divide(request: ReadJson, settings: Settings): AnswerInCalls | undefined {
    return this.#dividing?.divide?.(request, settings)
  }

  refer(
    request: ReferringRequest,
    reader: RequestReaderContext,
  ): ResolvedReferences | Promise<ResolvedReferences> {
    return this.#referring?.refer?.(request, reader) ?? UNRESOLVED
  }

  decoded(
    conversation: Conversation,
    spoken: ReadonlySet<ProtocolName>,
    reader: RequestReaderContext,
  ): DecodedConversation | Promise<DecodedConversation> {
    return this.#decoding?.decoded?.(conversation, spoken, reader) ?? sameForAll(conversation)
  }
}
