import type { Channel } from '../../../domain/records/channel.ts'
import type { Model } from '../../../domain/records/model.ts'
import type { ProviderTools } from '@sluice/wire/tool-use'
import { ChatTap, gateChatRequest, usageOfReply } from '@sluice/wire/chat'
import type { ScannedObject } from '@sluice/wire/json/scanned-object'
import { nativeTools } from '../channel-tools.ts'
import type { ConversionDialect } from '../conversion-dialect.ts'
import type { Conversions } from '../conversions.ts'
import type { Reader } from '../dialect.ts'
import { planChannels } from '../plan-channels.ts'
import type { ParsedRequest } from '../../request-stages.ts'

/** Checked request of an endpoint of the chat protocol. */
type CheckedRequest = Parameters<typeof gateChatRequest>[1] & {
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
  request: CheckedRequest,
  choices: number,
  reader: Reader,
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
        ...nativeTools(channel, 'chat', request.model, request.providerTools),
        prepare(passThrough) {
          const gated = gateChatRequest(scan, request, channel, passThrough)
          const { body, dropped, upstreamModel, askedForUsage } = gated
          return {
            protocol: 'chat',
            path: endpoint.path(upstreamModel, request.stream),
            headers: [],
            body,
            prompt: endpoint.prompt,
            upstreamModel,
            dropped,
            tap: () => new ChatTap({ swallowUsage: askedForUsage, addUsage: request.includeUsage }),
            reply: (bytes) => ({ facts: usageOfReply(bytes), body: () => bytes }),
          }
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
