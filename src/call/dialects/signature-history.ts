import { UPSTREAM_PROTOCOLS } from '../../domain/protocols.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Conversation } from '@sluice/wire/conversation'
import type { ReplyEvent, ReplyPart } from '@sluice/wire/reply'
import {
  SignedReply,
  signedPartsOfReply,
  UnsignedTurnFinder,
  SIGNING_DIALECTS,
} from '@sluice/wire/signatures'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type { Call } from '../call.ts'
import type { FoundSignatures, SignatureStore, SignedEntry } from '../responses/signature-store.ts'
import type { RequestReaderContext } from './dialect.ts'
import type { AttemptTarget } from '../request-stages.ts'

/** A conversation with the signatures that one provider account of a channel made. */
export interface AccountConversation {
  readonly conversation: Conversation
  /** Whether a key belongs to that account; absent if the conversation is for all keys. */
  readonly isOfKey?: (key: UpstreamKey) => boolean
}

/**
 * A conversation whose turns models have signed. Clients send it back without the signatures, which are
 * restored for the channels that can read them.
 */
export interface SignedHistory {
  /** Name of the channel that signed the latest turn; undefined if unknown. */
  readonly origin: string | undefined
  /** The conversation for each account of a channel, with the signatures made by that account. */
  conversationsFor(channel: Channel, spoken: ProtocolName): readonly AccountConversation[]
  /**
   * Stores the signatures of a reply. Resolves when the other nodes can find them, or after a maximum time.
   * Undefined if signatures are not stored.
   */
  readonly keep:
    | ((parts: readonly ReplyPart[], target: AttemptTarget, call: Call) => Promise<void>)
    | undefined
}

/** Collects the signatures of a streamed reply. */
export interface StreamSignatures {
  /** Collects the signatures in an event of the stream. */
  add(event: ReplyEvent): void
  /** Stores the collected signatures. */
  keep(target: AttemptTarget, call: Call): Promise<void>
}

/** Collects the signatures of a stream in the dialect `spoken`; undefined if it cannot have any. */
export function streamSignatures(
  { keep }: SignedHistory,
  spoken: ProtocolName,
): StreamSignatures | undefined {
  if (!keep || !SIGNING_DIALECTS.has(spoken)) return undefined
  const reply = new SignedReply()
  return {
    add: (event) => reply.add(event),
    keep: (target, call) => keep(reply.parts, target, call),
  }
}

/** A conversation whose signatures are neither stored nor restored. */
export function unsignedHistory(conversation: Conversation): SignedHistory {
  return {
    origin: undefined,
    conversationsFor: () => [{ conversation }],
    keep: undefined,
  }
}

/** Looks up the signatures of a conversation, for channels that speak the dialects `spoken`. */
export async function signedHistory(
  conversation: Conversation,
  spoken: ReadonlySet<ProtocolName>,
  reader: RequestReaderContext,
  store: SignatureStore,
): Promise<SignedHistory> {
  const retentionMs = reader.settings.options.keep_signatures
  if (retentionMs === 0 || ![...spoken].some((name) => SIGNING_DIALECTS.has(name)))
    return unsignedHistory(conversation)
  const turns = new UnsignedTurnFinder(conversation)
  const { anchors } = turns
  const known = anchors.length > 0 ? await store.find(reader.caller.user.id, anchors) : NOTHING
  const size = [...known.values()].reduce((sum, entry) => sum + entry.size, 0)
  if (size > 0) reader.hold(size)
  return new KnownHistory(conversation, turns, { known, store, retentionMs })
}

const NOTHING: FoundSignatures = new Map()

/** The signatures that were found for a conversation, and the store for the signatures of its reply. */
interface Found {
  readonly known: FoundSignatures
  readonly store: SignatureStore
  readonly retentionMs: number
}

class KnownHistory implements SignedHistory {
  readonly #conversation: Conversation
  readonly #turns: UnsignedTurnFinder
  readonly #found: Found

  constructor(conversation: Conversation, turns: UnsignedTurnFinder, found: Found) {
    this.#conversation = conversation
    this.#turns = turns
    this.#found = found
  }

  // The latest turn's signature comes first in `known`.
  get origin(): string | undefined {
    const [latest] = this.#found.known.values()
    return latest?.channel
  }

  conversationsFor(channel: Channel, spoken: ProtocolName): readonly AccountConversation[] {
    const { known, store } = this.#found
    const own = [...known.values()].filter(
      (entry) => entry.channel === channel.name && entry.protocol === spoken,
    )
    if (own.length === 0) return [{ conversation: this.#conversation }]
    if (!UPSTREAM_PROTOCOLS[spoken].signsByAccount)
      return [{ conversation: this.#restored(channel, spoken, () => true) }]
    const tags = new Set(channel.keys.map((key) => store.keyTag(key)))
    const tag = own.find(({ keyTag }) => tags.has(keyTag))?.keyTag
    if (tag === undefined) return [{ conversation: this.#conversation }]
    const restored = this.#restored(channel, spoken, ({ keyTag }) => keyTag === tag)
    if (tags.size === 1) return [{ conversation: restored }]
    const isOfKey = ({ value }: UpstreamKey): boolean => store.keyTag(value) === tag
    return [
      { conversation: restored, isOfKey },
      // Keys of other accounts get the conversation without signatures, because their accounts cannot read
      // these.
      { conversation: this.#conversation, isOfKey: (key) => !isOfKey(key) },
    ]
  }

  readonly keep = (
    parts: readonly ReplyPart[],
    { channel, key, request }: AttemptTarget,
    call: Call,
  ): Promise<void> => {
    const { store, retentionMs } = this.#found
    const runs = signedPartsOfReply(parts, this.#turns)
    if (runs.size === 0) return Promise.resolve()
    const account = { protocol: request.protocol, channel: channel.name, keyTag: store.keyTag(key.value) }
    return store.keep(call.hold.account.user.id, account, runs, retentionMs)
  }

  #restored(
    channel: Channel,
    spoken: ProtocolName,
    isOfAccount: (entry: SignedEntry) => boolean,
  ): Conversation {
    return this.#turns.restored((anchor) => {
      const entry = this.#found.known.get(anchor)
      const isOwn = entry?.channel === channel.name && entry.protocol === spoken && isOfAccount(entry)
      return isOwn ? entry.run : undefined
    })
  }
}
