import {
  gateMessagesRequest,
  MessagesTap,
  promptText,
  readMessagesRequest,
  usageOfMessage,
} from '../../../protocols/messages/index.ts'
import type { Conversions } from '../conversions.ts'
import type { Dialect } from '../dialect.ts'
import { requestsFor } from '../requests-for.ts'
import { convertedMessages } from './converted-messages.ts'
import { versionHeaders } from './version-headers.ts'

/** Messages: bytes to channels that speak them, converted to others. */
export function messagesDialect(conversions: Conversions): Dialect {
  return {
    name: 'messages',
    endpoint: 'messages',
    promptText,
    read(scan, headers, reader) {
      const request = readMessagesRequest(scan)
      const upstreamHeaders = versionHeaders(headers)
      return {
        ...request,
        ...(request.hasMedia && { measuredBounds: { hasMedia: true } }),
        forChannels: (channels, model) =>
          requestsFor(
            'messages',
            request.model,
            channels,
            model,
            (channel) => ({
              channel,
              outputMaximum: request.maxTokens,
              choices: 1,
              prepare(passThrough) {
                const { body, upstreamModel } = gateMessagesRequest(scan, request, channel, passThrough)
                return {
                  protocol: 'messages',
                  path: convertedMessages.path(upstreamModel, request.stream),
                  headers: upstreamHeaders,
                  body,
                  upstreamModel,
                  dropped: [],
                  tap: () => new MessagesTap(),
                  reply: (bytes) => ({ facts: usageOfMessage(bytes), body: () => bytes }),
                }
              },
            }),
            (spoken) =>
              conversions.decode(convertedMessages, scan, { maxTokens: request.maxTokens, reader, spoken }),
          ),
      }
    },
  }
}
