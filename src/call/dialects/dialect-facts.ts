import type { ConversationComparisonRules } from '@sluice/wire/conversation-digests'
import type { ScanLimits } from '@sluice/wire/json/json-scan'
import type { KnownMemberNames } from '@sluice/wire/json/known-names'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { ProtocolName, ServedProtocol } from '@sluice/wire/protocols'
import type { Shape } from '@sluice/wire/shape/define-shape'
import type { Endpoint } from '../../domain/endpoints.ts'
import type { AnswerStorageRules } from './answer-storage-rules.ts'

/** An endpoint's protocol as clients speak it. */
export interface DialectFacts {
  readonly name: ServedProtocol
  /** Name of the endpoint under which calls are recorded. */
  readonly endpoint: Endpoint
  /**
   * Protocols of the channels that serve the endpoint; absent if calls can be converted to all protocols that
   * have conversions.
   */
  readonly servedBy?: readonly ProtocolName[]
  /** Names of the fields that requests may have. They are checked before anything else. */
  readonly names: KnownMemberNames
  /**
   * Limits on the depth and the number of values of a request's JSON, if they differ from those of other
   * endpoints.
   */
  readonly scanLimits?: ScanLimits
  /** The model, if the path of the request names it. */
  readonly pathModel?: string
  /** Content type of the client's streams, if these do not consist of events. */
  readonly streamType?: string
  /** Whether upstreams need not have the endpoint. A 404 then does not mean that the model is missing. */
  readonly mayBeUnserved?: true
  /** Whether requests only count tokens. Nothing is learned of a channel from their answers. */
  readonly isCount?: true
  /** Whether requests have no fallback models. A successor takes the place of the model all the same. */
  readonly hasNoFallbacks?: true
  /** Whether a model without a price is free at this endpoint, independent of the operator's setting. */
  readonly isFreeUnpriced?: true
}

/** How the JSON requests of a dialect are read and compared. */
export interface JsonRules {
  /** The shape of its requests. */
  readonly shape: Shape
  /**
   * How conversations in this dialect are compared with earlier ones; absent if requests contain no
   * conversation.
   */
  readonly conversation?: ConversationComparisonRules
  /**
   * Returns how the answer to a request may be kept for equal requests; undefined if it may not be kept.
   * Absent if no answer of this dialect may be kept.
   */
  readonly keeping?: (scan: ScannedObject) => AnswerStorageRules | undefined
}
