import type { Conversation } from '@sluice/wire/conversation'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Shape } from '@sluice/wire/shape/define-shape'
import type { Caller } from '../../accounts/authentication/caller.ts'
import type { Settings } from '../../domain/settings.ts'
import type { Headers } from '../../http/request.ts'
import type { StoreRead } from '../../limits/store-reads.ts'
import type { FormBody } from '../body-reader.ts'
import type { ParsedRequest } from '../request-stages.ts'
import type { DecodedConversation } from './decoded-conversation.ts'
import type { DialectFacts, JsonRules } from './dialect-facts.ts'
import type { ReferringRequest, ResolvedReferences } from './references.ts'

/** The caller whose request is read, and what reading it needs. */
export interface RequestReaderContext {
  readonly caller: Caller
  readonly settings: Settings
  /** Allocates memory in addition to the body until the call ends. Throws `overloaded` if none is left. */
  readonly hold: (bytes: number) => void
  /** Waits for the memory of the copies that a conversion of a request of `bytes` bytes makes; see `Body`. */
  readonly holdCopies: (bytes: number) => Promise<void> | undefined
  /**
   * Begins a read of the database for the request. The memory of the result is allocated until the call ends.
   */
  readonly readStore: () => StoreRead
  /** The features that take part in reading the request. */
  readonly features: ReadingMoments
  /** Checks content that is added to the request, as the request itself was checked; absent if it was not. */
  readonly check?: (scan: ScannedObject, shape: Shape) => Promise<ScannedObject>
}

/** The moments of features that dialects know. */
export interface ReadingMoments {
  refer(
    request: ReferringRequest,
    reader: RequestReaderContext,
  ): ResolvedReferences | Promise<ResolvedReferences>
  decoded(
    conversation: Conversation,
    spoken: ReadonlySet<ProtocolName>,
    reader: RequestReaderContext,
  ): DecodedConversation | Promise<DecodedConversation>
}

/** A dialect whose requests are JSON. */
export interface Dialect extends DialectFacts, JsonRules {
  /** Returns the dialect in which a body is read that has another form; undefined for the usual form. */
  readonly ofForm?: (scan: ScannedObject) => Dialect | undefined
  /** Checks a request. Throws `invalid_request` that names the field. */
  read(
    scan: ScannedObject,
    headers: Headers,
    reader: RequestReaderContext,
  ): ParsedRequest | Promise<ParsedRequest>
}

/** A dialect whose requests are forms. */
export interface FormDialect extends DialectFacts {
  /** Checks a request. Throws `invalid_request` that names the field. */
  read(form: FormBody, reader: RequestReaderContext): ParsedRequest | Promise<ParsedRequest>
}
