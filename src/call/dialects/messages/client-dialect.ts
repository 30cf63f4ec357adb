import { messagesStorageRules } from '../answer-storage-rules.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import {
  MESSAGES_COMPARISON_RULES,
  adaptMessagesRequest,
  messagesFieldNames,
  MessagesTap,
  readMessagesRequest,
  usageOfMessage,
  MESSAGES_REQUEST,
} from '@sluice/wire/messages'
import type { Conversions } from '../conversions.ts'
import type { Dialect } from '../dialect.ts'
import { ANY_MEDIA, nativeConversation, nativeRequest, nativeTools, planChannels } from '../plan-channels.ts'
import { withRepair } from '../repair-answers.ts'
import { messagesConversion } from '../conversion-dialects.ts'
import { versionHeaders } from './version-headers.ts'
import type { ChannelPlan, ParsedRequest } from '../../request-stages.ts'

/** Dialect of messages. Requests are passed through to channels that speak it, and converted for others. */
export function messagesDialect(conversions: Conversions): Dialect {
  return {
    name: 'messages',
    endpoint: 'messages',
    names: messagesFieldNames,
    shape: MESSAGES_REQUEST,
    conversation: MESSAGES_COMPARISON_RULES,
    keeping: messagesStorageRules,
    read(scan, headers, reader) {
      const read = readMessagesRequest(scan)
      const upstreamHeaders = versionHeaders(headers)
      const forModel = (name: string): ParsedRequest => {
        const request = { ...read, model: name }
        const { maxTokens, stream } = request
        const native = (channel: Channel): ChannelPlan => ({
          channel,
          outputMaximum: maxTokens,
          choices: 1,
          ...nativeRequest(channel, 'messages', name, scan),
          ...nativeConversation(channel, messagesConversion, name, scan, upstreamHeaders),
          ...nativeTools(channel, 'messages', name, request.providerTools),
          prepare(passThrough) {
            const gated = adaptMessagesRequest(scan, request, channel, passThrough)
            return withRepair(channel, messagesConversion, {
              protocol: 'messages',
              path: messagesConversion.path(gated.upstreamModel, stream),
              headers: upstreamHeaders,
              ...gated,
              prompt: messagesConversion.prompt,
              tap: () => new MessagesTap(),
              reply: (bytes) => ({ facts: usageOfMessage(bytes), body: () => bytes }),
            })
          },
        })
        return {
          ...request,
          ...(request.hasMedia && { measured: ANY_MEDIA }),
          forModel,
          forChannels: (channels, model) =>
            planChannels('messages', name, channels, model, native, (spoken) => {
              const target = { model: name, stream }
              return conversions.decode(messagesConversion, scan, { maxTokens, reader, spoken, target })
            }),
        }
      }
      return forModel(read.model)
    },
  }
}
