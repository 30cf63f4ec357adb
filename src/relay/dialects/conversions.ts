import { randomUUID } from 'node:crypto'
import type { Channel } from '../../domain/channel.ts'
import type { Model } from '../../domain/settings.ts'
import { withAcceptedSampling } from '../../protocols/accepted-sampling.ts'
import { withoutCacheMarks } from '../../protocols/cache-marks.ts'
import { AnswerToolDecoder, withAnswerAsText } from '../../protocols/answer-tool.ts'
import { chatCodec } from '../../protocols/chat/index.ts'
import type { Codec, Dropped, Minted, StreamDecoder, UpstreamModel } from '../../protocols/codec.ts'
import type { Conversation, ConversionProtocol } from '../../protocols/conversation.ts'
import { EventBudget } from '../../protocols/sse/event-budget.ts'
import {
  maxTokensOf,
  messagesCodec,
  withoutThinkingSuffix,
  withSuffixThinking,
} from '../../protocols/messages/index.ts'
import { capabilitiesOf } from '../../protocols/model-capabilities.ts'
import type { Reply } from '../../protocols/reply.ts'
import type { ReplyFacts } from '../../protocols/reply-facts.ts'
import type { ScannedObject } from '../../protocols/json/scanned-object.ts'
import type { MediaRequester, Media } from '../media.ts'
import { takesCacheMarks } from './chat/cache-mark-channels.ts'
import { ConvertingTap } from './converting-tap.ts'
import type { Prepared, PreparedReply } from './dialect.ts'
import { versionHeaders } from './messages/version-headers.ts'

const CODECS: Record<ConversionProtocol, Codec> = { chat: chatCodec, messages: messagesCodec }
const OTHER: Record<ConversionProtocol, ConversionProtocol> = { chat: 'messages', messages: 'chat' }
const PATHS: Record<ConversionProtocol, string> = { chat: '/chat/completions', messages: '/messages' }

/** What is converted: a request in its caller's protocol. */
interface Convertible {
  readonly maxTokens: number | undefined
}

/** A request on its way to channels of the other protocol. */
export interface Conversion {
  /** For a channel that does not speak the caller's protocol. */
  prepare(channel: Channel, model: Model, asker: MediaRequester): Promise<Prepared>
  /** The output tokens that such a channel will be told as the most; undefined where it is told none. */
  outputMaximum(channel: Channel, model: Model): number | undefined
}

interface Read {
  readonly conversation: Conversation
  readonly dropped: ReadonlySet<string>
}

/** A conversation for one channel. */
interface Fitted {
  readonly conversation: Conversation
  readonly upstream: UpstreamModel
  readonly dropped: Dropped
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
    const reading = (): Read => (read ??= readRequest(from, scan))
    return {
      outputMaximum: (channel, model) => {
        try {
          const { conversation, upstream } = fitted(from, reading(), channel, model)
          return from === 'chat' ? maxTokensOf(conversation, upstream.capabilities) : conversation.maxTokens
        } catch {
          // It cannot go to such a channel at all: that is for `prepare` to say.
          return request.maxTokens
        }
      },
      prepare: async (channel, model, asker) =>
        this.#prepare(from, fitted(from, reading(), channel, model), asker),
    }
  }

  async #prepare(
    from: ConversionProtocol,
    { conversation, upstream, dropped }: Fitted,
    asker: MediaRequester,
  ): Promise<Prepared> {
    const to = OTHER[from]
    const inline = await this.#media.inline(conversation, (part) => CODECS[to].mustFetch(part), asker)
    const body = CODECS[to].encodeRequest(inline, upstream, dropped)
    const answerTool = CODECS[to].answerTool(inline, upstream.capabilities)
    return {
      path: PATHS[to],
      headers: to === 'messages' ? versionHeaders({}) : [],
      body,
      upstreamModel: upstream.name,
      dropped: [...dropped],
      beginsWithPrompt: from === 'messages',
      tap: (promptTokens) =>
        new ConvertingTap(
          streamDecoder(CODECS[to], this.#eventBudget, answerTool),
          CODECS[from].streamEncoder(minted(), { includeUsage: conversation.includeUsage }),
          { model: upstream.name, promptTokens },
        ),
      reply: (bytes) => convertedReply(CODECS[to], CODECS[from], bytes, answerTool),
    }
  }
}

function readRequest(from: ConversionProtocol, scan: ScannedObject): Read {
  const dropped = new Set<string>()
  return { conversation: CODECS[from].decodeRequest(scan, dropped), dropped }
}

/** The decoded request, as far as the channel and its model accept it. */
function fitted(from: ConversionProtocol, read: Read, channel: Channel, model: Model): Fitted {
  const dropped = new Set(read.dropped)
  const asked = read.conversation.model
  const plain = withoutThinkingSuffix(asked)
  const to = OTHER[from]
  // The suffix is for us: a messages upstream gets the name without it.
  const wanted = (to === 'messages' ? plain : undefined) ?? asked
  const name = channel.modelMapping.get(asked) ?? channel.modelMapping.get(wanted) ?? wanted
  const capabilities = capabilitiesOf(name, asked, model.capabilities)
  const thinking =
    to === 'messages' && plain !== undefined
      ? withSuffixThinking(read.conversation, capabilities)
      : read.conversation
  const accepted = withAcceptedSampling(thinking, capabilities, dropped)
  const conversation =
    to === 'messages' || takesCacheMarks(channel) ? accepted : withoutCacheMarks(accepted, dropped)
  return { conversation, upstream: { name, capabilities }, dropped }
}

function streamDecoder(upstream: Codec, budget: EventBudget, answerTool: string | undefined): StreamDecoder {
  const decoder = upstream.streamDecoder(budget)
  return answerTool === undefined ? decoder : new AnswerToolDecoder(decoder, answerTool)
}

function convertedReply(
  upstream: Codec,
  caller: Codec,
  bytes: Buffer,
  answerTool: string | undefined,
): PreparedReply {
  let reply: Reply
  try {
    reply = upstream.decodeReply(bytes)
    if (answerTool !== undefined) reply = withAnswerAsText(reply, answerTool)
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
