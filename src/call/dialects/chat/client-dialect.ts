import {
  CHAT_COMPARISON_RULES,
  CHAT_REQUEST,
  chatFieldNames,
  ChatTap,
  adaptChatRequest,
  readChatRequest,
  usageOfReply,
} from '@sluice/wire/chat'
import { decodeResponsesForm, isResponsesForm, readResponsesForm } from '@sluice/wire/responses-in-chat'
import { RESPONSES_COMPARISON_RULES, RESPONSES_REQUEST, responsesFieldNames } from '@sluice/wire/responses'
import { asRecord } from '@sluice/wire/json/record'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import type { ProviderTools } from '@sluice/wire/tool-use'
import { chatStorageRules } from '../answer-storage-rules.ts'
import type { Channel } from '../../../domain/records/channel.ts'
import type { Model } from '../../../domain/records/model.ts'
import { mayNameTier } from '../../../upstreams/channel-tier.ts'
import type { AttemptRequest, ParsedRequest } from '../../request-stages.ts'
import { chatConversion, type ConversionDialect } from '../conversion-dialects.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect, RequestReaderContext } from '../dialect.ts'
import { ANY_MEDIA, nativeConversation, nativeRequest, nativeTools, planChannels } from '../plan-channels.ts'
import { withRepair } from '../repair-answers.ts'

/** Checked request of an endpoint of the chat protocol. */
type ChatRequest = Parameters<typeof adaptChatRequest>[1] & {
  readonly maxTokens: number | undefined
  readonly includeUsage: boolean
  readonly providerTools?: ProviderTools
}

/**
 * Requests to channels from an endpoint of the chat protocol: unchanged for channels that speak it, converted
 * for others. `choices`: the number of choices requested.
 */
export function chatRequests(
  conversions: Conversions,
  endpoint: ConversionDialect,
  scan: ScannedObject,
  request: ChatRequest,
  choices: number,
  reader: RequestReaderContext,
): ParsedRequest['forChannels'] {
  return (channels: readonly Channel[], model: Model) =>
    planChannels(
      'chat',
      request.model,
      channels,
      model,
      (channel) => ({
        channel,
        outputMaximum: request.maxTokens,
        choices,
        ...nativeRequest(channel, 'chat', request.model, scan),
        ...(endpoint === chatConversion && nativeConversation(channel, endpoint, request.model, scan)),
        ...nativeTools(channel, 'chat', request.model, request.providerTools),
        prepare(passThrough) {
          const gated = adaptChatRequest(scan, request, channel, {
            passThrough,
            statesTier: mayNameTier(endpoint.path(request.model, request.stream)),
          })
          const { body, dropped, upstreamModel, addedUsageOption } = gated
          const sent: AttemptRequest = {
            protocol: 'chat',
            path: endpoint.path(upstreamModel, request.stream),
            headers: [],
            body,
            prompt: endpoint.prompt,
            upstreamModel,
            dropped,
            tap: () =>
              new ChatTap({
                swallowUsage: addedUsageOption,
                addUsage: request.includeUsage,
                fillsCache: asRecord(scan.value('prompt_cache_options'))?.['prewarm'] === true,
              }),
            reply: (bytes) => ({ facts: usageOfReply(bytes), body: () => bytes }),
          }
          return endpoint === chatConversion ? withRepair(channel, endpoint, sent, choices) : sent
        },
      }),
      (spoken) => {
        const { maxTokens, model: name, stream } = request
        return conversions.decode(endpoint, scan, {
          maxTokens,
          reader,
          spoken,
          target: { model: name, stream },
        })
      },
    )
}

/** Responses requests that are answered in chat. */
const responsesForm: ConversionDialect = {
  ...chatConversion,
  codec: { ...chatConversion.codec, decodeRequest: decodeResponsesForm },
}

/** Dialect of responses requests at the chat endpoint: converted for all channels. */
function responsesFormDialect(conversions: Conversions): Dialect {
  return {
    name: 'chat',
    endpoint: 'chat',
    names: responsesFieldNames,
    shape: RESPONSES_REQUEST,
    conversation: RESPONSES_COMPARISON_RULES,
    read(scan, _headers, reader) {
      const read = readResponsesForm(scan)
      const forModel = (model: string): ParsedRequest => {
        const { maxTokens, stream } = read
        return {
          ...read,
          model,
          ...(read.hasMedia && { measured: ANY_MEDIA }),
          forChannels: (channels, configured) =>
            planChannels('responses', model, channels, configured, undefined, (spoken) =>
              conversions.decode(responsesForm, scan, {
                maxTokens,
                reader,
                spoken,
                target: { model, stream },
              }),
            ),
          forModel,
        }
      }
      return forModel(read.model)
    },
  }
}

/** Dialect of chat completions: passed through to channels that speak it, converted for others. */
export function chatDialect(conversions: Conversions): Dialect {
  const ofResponses = responsesFormDialect(conversions)
  return {
    ofForm: (scan) => (isResponsesForm(scan) ? ofResponses : undefined),
    name: 'chat',
    endpoint: 'chat',
    names: chatFieldNames,
    shape: CHAT_REQUEST,
    conversation: CHAT_COMPARISON_RULES,
    keeping: chatStorageRules,
    read(scan, _headers, reader) {
      const read = readChatRequest(scan)
      const forModel = (model: string): ParsedRequest => {
        const request = { ...read, model }
        const forChannels = chatRequests(conversions, chatConversion, scan, request, request.n, reader)
        const measured = request.hasMedia && { measured: ANY_MEDIA }
        return { ...request, ...measured, forChannels, forModel }
      }
      return forModel(read.model)
    },
  }
}
