import type { AnswerOrigin } from '../../call/dialects/answer-reader.ts'
import { UPSTREAM_PROTOCOLS } from '../../domain/protocols.ts'
import type { Channel } from '../../domain/records/channel.ts'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Conversation } from '@sluice/wire/conversation'
import type { ReplyPart } from '@sluice/wire/reply'
import {
  SignedReply,
  signedPartsOfReply,
  UnsignedTurnFinder,
  SIGNING_DIALECTS,
} from '@sluice/wire/signatures'
import type { UpstreamKey } from '../../upstreams/key-ring.ts'
import type {
  AccountConversation,
  DecodedConversation,
  StreamedParts,
} from '../../call/dialects/decoded-conversation.ts'
import type { RequestReaderContext } from '../../call/dialects/dialect.ts'
import type { FoundSignatures, SignatureStore, SignedEntry } from './signature-store.ts'

/**
 * Looks up the signatures of a conversation, whose clients send it back without them. They are restored for the channels
 * that can read them. Returns undefined if no channel that speaks one of the dialects `spoken` signs.
 */
export function signedHistory(
  conversation: Conversation,
  spoken: ReadonlySet<ProtocolName>,
  reader: RequestReaderContext,
  store: SignatureStore,
): Promise<DecodedConversation> | undefined {
  const retentionMs = reader.settings.options.keep_signatures
  if (retentionMs === 0 || ![...spoken].some((name) => SIGNING_DIALECTS.has(name))) return undefined
  return findHistory(conversation, reader, store, retentionMs)
}

async function findHistory(
  conversation: Conversation,
  reader: RequestReaderContext,
  store: SignatureStore,
  retentionMs: number,
): Promise<DecodedConversation> {
  const turns = new UnsignedTurnFinder(conversation)
  const { anchors } = turns
  const known = anchors.length > 0 ? await store.find(reader.caller.user.id, anchors) : NOTHING
  const size = [...known.values()].reduce((sum, entry) => sum + entry.size, 0)
  if (size > 0) reader.hold(size)
  return new SignedHistory(conversation, turns, { known, store, retentionMs })
}

const NOTHING: FoundSignatures = new Map()

/** The signatures that were found for a conversation, and the store for the signatures of its reply. */
interface Found {
  readonly known: FoundSignatures
  readonly store: SignatureStore
  readonly retentionMs: number
}

/** A conversation whose turns models have signed. */
class SignedHistory implements DecodedConversation {
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
    { userId, channel, key, protocol }: AnswerOrigin,
  ): Promise<void> => {
    const { store, retentionMs } = this.#found
    const runs = signedPartsOfReply(parts, this.#turns)
    if (runs.size === 0) return Promise.resolve()
    const account = { protocol, channel, keyTag: store.keyTag(key.value) }
    return store.keep(userId, account, runs, retentionMs)
  }

  readonly streamed = (spoken: ProtocolName): StreamedParts | undefined => {
    if (!SIGNING_DIALECTS.has(spoken)) return undefined
    const reply = new SignedReply()
    return {
      add: (event) => reply.add(event),
      keep: (origin) => this.keep(reply.parts, origin),
    }
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
