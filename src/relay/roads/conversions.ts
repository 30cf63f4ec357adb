import { randomUUID } from 'node:crypto'
import type { Channel } from '../../domain/channel.ts'
import { chatCodec } from '../../protocols/chat/index.ts'
import type { Codec, Minted } from '../../protocols/codec.ts'
import type { Conversation, ConversionProtocol } from '../../protocols/conversation.ts'
import { EventBudget } from '../../protocols/event-budget.ts'
import {
  maxTokensOf,
  messagesCodec,
  withoutThinkingSuffix,
  withSuffixThinking,
} from '../../protocols/messages/index.ts'
import type { Reply } from '../../protocols/reply.ts'
import type { ReplyFacts } from '../../protocols/reply-facts.ts'
import type { ScannedObject } from '../../protocols/scanned-object.ts'
import type { Media } from '../media.ts'
import { ConvertingTap } from './converting-tap.ts'
import type { Prepared, PreparedReply } from './road.ts'
import { versionHeaders } from './version-headers.ts'

const CODECS: Record<ConversionProtocol, Codec> = { chat: chatCodec, messages: messagesCodec }
const OTHER: Record<ConversionProtocol, ConversionProtocol> = { chat: 'messages', messages: 'chat' }
const PATHS: Record<ConversionProtocol, string> = { chat: '/chat/completions', messages: '/messages' }

/** What is converted: a request in its caller's protocol. */
interface Convertible {
  readonly model: string
  readonly maxTokens: number | undefined
}

/** A request on its way to channels of the other protocol. */
export interface Conversion {
  /** For a channel that does not speak the caller's protocol. */
  prepare(channel: Channel): Promise<Prepared>
  /** The output tokens that such a channel will be told as the most; undefined where it is told none. */
  outputMaximum(): number | undefined
}

interface Read {
  readonly conversation: Conversation
  readonly dropped: ReadonlySet<string>
}

/** The road between two different protocols: requests there, answers back. */
export class Conversions {
  readonly #media: Media
  readonly #eventBudget = new EventBudget()

  constructor(media: Media) {
    this.#media = media
  }

  /** The conversion of a `from` caller's request. It is read once, when it is first needed. */
  of(from: ConversionProtocol, scan: ScannedObject, request: Convertible): Conversion {
    let read: Read | undefined
    const reading = (): Read => (read ??= readRequest(from, scan, request.model))
    return {
      outputMaximum: () => {
        try {
          const { conversation } = reading()
          return from === 'chat' ? maxTokensOf(conversation) : conversation.maxTokens
        } catch {
          // It cannot go to such a channel at all: that is for \`prepare\` to say.
          return request.maxTokens
        }
      },
      prepare: async (channel) => this.#prepare(from, reading(), request.model, channel),
    }
  }

  async #prepare(from: ConversionProtocol, read: Read, model: string, channel: Channel): Promise<Prepared> {
    const to = OTHER[from]
    const dropped = new Set(read.dropped)
    const conversation = await this.#media.inline(read.conversation, (part) => CODECS[to].mustFetch(part))
    const upstreamModel = upstreamName(channel, model, to)
    const body = CODECS[to].encodeRequest(conversation, upstreamModel, dropped)
    return {
      path: PATHS[to],
      headers: to === 'messages' ? versionHeaders({}) : [],
      body,
      upstreamModel,
      dropped: [...dropped],
      beginsWithPrompt: from === 'messages',
      tap: (promptTokens) =>
        new ConvertingTap(
          CODECS[to].streamDecoder(this.#eventBudget),
          CODECS[from].streamEncoder(minted(), { includeUsage: conversation.includeUsage }),
          { model: upstreamModel, promptTokens },
        ),
      reply: (bytes) => convertedReply(CODECS[to], CODECS[from], bytes),
    }
  }
}

function readRequest(from: ConversionProtocol, scan: ScannedObject, model: string): Read {
  const dropped = new Set<string>()
  const conversation = CODECS[from].decodeRequest(scan, dropped)
  const thinks = from === 'chat' && withoutThinkingSuffix(model) !== undefined
  return { conversation: thinks ? withSuffixThinking(conversation, model) : conversation, dropped }
}

// The suffix is for us: an upstream gets the name without it.
function upstreamName({ modelMapping }: Channel, model: string, to: ConversionProtocol): string {
  const plain = (to === 'messages' ? withoutThinkingSuffix(model) : undefined) ?? model
  return modelMapping.get(model) ?? modelMapping.get(plain) ?? plain
}

function convertedReply(upstream: Codec, caller: Codec, bytes: Buffer): PreparedReply {
  let reply: Reply
  try {
    reply = upstream.decodeReply(bytes)
  } catch {
    return { facts: NO_REPLY, body: () => bytes }
  }
  const facts: ReplyFacts = { valid: true, error: false, usage: reply.usage, text: () => textOf(reply) }
  return { facts, body: (charged) => caller.encodeReply({ ...reply, usage: charged }, minted()) }
}

const NO_REPLY: ReplyFacts = { valid: false, error: false, usage: undefined, text: () => '' }

function textOf({ parts }: Reply): string {
  return parts
    .map((part) => {
      switch (part.kind) {
        case 'text':
        case 'thinking':
          return part.text
        case 'tool-call':
          return `${part.name}\n${part.input}`
        case 'opaque':
          return ''
      }
    })
    .join('\n')
}

function minted(): Minted {
  return { created: Math.floor(Date.now() / 1000), id: randomUUID().replaceAll('-', '') }
}
